"""What names lead to, by each node's own resolver: its own host name, and the names of the listed nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, cast

from ncheck.facts.definition import LONGEST, Fact, exempt_without_peers, no_answer
from ncheck.hostlist import is_v6, quoted
from ncheck.model.evidence import Answer, Evidence, JsonValue
from ncheck.model.fact import Read
from ncheck.model.phase import NotAsked, Questions
from ncheck.network.ssh_edges import edges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ncheck.model.cluster import Cluster
    from ncheck.model.node import Node
    from ncheck.settings import Settings


@dataclass(frozen=True)
class Resolved:
    """What a name leads to, in the resolver's order, which is the order in which a program tries the addresses.

    No address: `error` holds the resolver's words. `late`: the resolver had not answered when the time was over.
    """

    addresses: tuple[str, ...] = ()
    error: str = ""
    late: bool = False


@dataclass(frozen=True)
class HostNameFacts:
    """The node's own name (gethostname) and what it leads to on the node itself."""

    name: str
    leads_to: Resolved


@dataclass(frozen=True)
class NameFacts:
    """What the names of listed nodes lead to on this node: those that a launch would look up here."""

    names: Mapping[str, Resolved]

    def among(self, names: frozenset[str]) -> NameFacts:
        """Return the names of these nodes."""
        return NameFacts({name: resolved for name, resolved in self.names.items() if name in names})


HOST_NAME = Answer("host-name")


NAMES = Answer("names")


def host_name(evidence: Evidence) -> Read[HostNameFacts]:
    """Read the node's own name. Raises ValueError or KeyError for an answer that is none."""
    reply = evidence.reply(HOST_NAME)
    if why := no_answer(HOST_NAME, reply):
        return why
    said = cast("Mapping[str, object]", reply.value)
    return HostNameFacts(str(said["name"]), _resolved(said["leads_to"]))


def names(evidence: Evidence) -> Read[NameFacts]:
    """Read what the names that were asked for lead to; a node that was asked for none is Absent."""
    reply = evidence.reply(NAMES)
    if why := no_answer(NAMES, reply):
        return why
    said = cast("Mapping[str, Mapping[str, object]]", reply.value)
    return NameFacts({name: _resolved(what) for name, what in said["names"].items()})


def _resolved(said: object) -> Resolved:
    what = cast("Mapping[str, object]", said)
    if what.get("late"):
        return Resolved(late=True)
    if "error" in what:
        return Resolved(error=str(what["error"])[:LONGEST] or "it does not resolve")
    addresses = tuple(map(_address, cast("list[str]", what["addresses"])))
    return Resolved(addresses) if addresses else Resolved(error="it resolves to no address")


def _address(said: str) -> str:
    """Return an address as ipaddress writes it. Raises ValueError for a zone that is the name of no interface."""
    if "%" in said and not is_v6(said):
        raise ValueError(f"{quoted(said)} is no address")
    return str(ip_address(said))


_PATIENCE = 10.0  # seconds that a node's resolver gets for all of them


def ask_names(cluster: Cluster, settings: Settings, left: float) -> Questions:
    """Ask each node for its own name as listed, the first node's, where ranks meet, and those that it would ssh to."""
    found = edges(len(cluster), settings.mesh)
    questions: Questions = {}
    for number, node in enumerate(cluster.nodes):
        names = list(_names(cluster.nodes, (number, 0, *found.get(number, ()))))
        asked: JsonValue = {"names": list(names)}
        limit = max(1.0, min(_PATIENCE, left - 1.0))
        why = "the nodes are listed by address: there is no name to look up"
        questions[node.name] = (replace(NAMES, arguments=asked, timeout=limit) if names else NotAsked(NAMES, why),)
    return questions


def _names(nodes: tuple[Node, ...], wanted: Iterable[int]) -> Iterator[str]:
    for number in dict.fromkeys(wanted):
        if not nodes[number].local and not _is_address(nodes[number].name):
            yield nodes[number].name


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


FACTS = (
    Fact(HostNameFacts, (HOST_NAME,), host_name),
    Fact(NameFacts, (NAMES,), names, questions=ask_names, exempt=exempt_without_peers),
)
