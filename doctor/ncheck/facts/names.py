"""What names resolve to on each node: its own hostname, and the names of the listed nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal, TypedDict, cast, final

from ncheck.facts.definition import LONGEST, Fact, exempt_in_job, exempt_without_peers, no_answer
from ncheck.facts.ssh_peers import launch_origin
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
    """The addresses of a name, in the resolver's order, in which programs try them.

    Without an address, `error` is the resolver's message. `late`: the resolver did not answer in time.
    """

    addresses: tuple[str, ...] = ()
    error: str = ""
    late: bool = False


@dataclass(frozen=True)
class HostNameFacts:
    """The node's own name (gethostname), and what it resolves to on the node itself."""

    name: str
    leads_to: Resolved


@dataclass(frozen=True)
class NameFacts:
    """What the names of other nodes resolve to on this node: those that a launch would look up here."""

    names: Mapping[str, Resolved]

    def among(self, names: frozenset[str]) -> NameFacts:
        """Return the names of these nodes."""
        return NameFacts({name: resolved for name, resolved in self.names.items() if name in names})


@final
class Late(TypedDict):
    """The resolver did not answer in time."""

    late: Literal[True]


@final
class Failed(TypedDict):
    """The resolver's error."""

    error: str


@final
class Found(TypedDict):
    """The addresses, in the resolver's order."""

    addresses: list[str]


LookedUp = Late | Failed | Found


class HostNameAnswer(TypedDict):
    """The node's own name, and what it resolves to."""

    name: str
    leads_to: LookedUp


class NamesAnswer(TypedDict):
    """What each name resolves to."""

    names: dict[str, LookedUp]


HOST_NAME = Answer("host-name", shape=HostNameAnswer)


NAMES = Answer("names", shape=NamesAnswer)


def host_name(evidence: Evidence) -> Read[HostNameFacts]:
    """Read the node's own name. Raises ValueError or KeyError if the answer is malformed."""
    reply = evidence.reply(HOST_NAME)
    if why := no_answer(HOST_NAME, reply):
        return why
    answer = cast("HostNameAnswer", reply.value)
    return HostNameFacts(answer["name"], resolved(answer["leads_to"]))


def names(evidence: Evidence) -> Read[NameFacts]:
    """Read what the names resolve to; Absent on a node that had none to look up."""
    reply = evidence.reply(NAMES)
    if why := no_answer(NAMES, reply):
        return why
    answer = cast("NamesAnswer", reply.value)
    return NameFacts({name: resolved(what) for name, what in answer["names"].items()})


def resolved(what: LookedUp) -> Resolved:
    """Return what a name resolves to. Raises ValueError for what is no address."""
    if "late" in what:
        return Resolved(late=True)
    if "error" in what:
        return Resolved(error=what["error"][:LONGEST] or "it does not resolve")
    addresses = tuple(map(_address, what["addresses"]))
    return Resolved(addresses) if addresses else Resolved(error="it resolves to no address")


@lru_cache(maxsize=4096)  # every node of a cluster looks up all the others
def _address(text: str) -> str:
    """Return an address as ipaddress writes it. Raises ValueError for a zone that is not the name of an interface."""
    if "%" in text and not is_v6(text):
        raise ValueError(f"{quoted(text)} is not an address")
    return str(ip_address(text))


_PATIENCE = 10.0  # seconds for a node's resolver, for all names together


def ask_names(cluster: Cluster, settings: Settings, left: float) -> Questions:
    """Ask each node to look up its own listed name, the first node's (MASTER_ADDR), and those it would ssh to."""
    found = edges(len(cluster), settings.mesh, launch_origin(cluster))
    questions: Questions = {}
    for number, node in enumerate(cluster.nodes):
        names = list(_names(cluster.nodes, (number, 0, *found.get(number, ()))))
        asked: JsonValue = {"names": list(names)}
        limit = max(1.0, min(_PATIENCE, left - 1.0))
        why = "the nodes are listed by address: no name to look up"
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


def exempt_names(cluster: Cluster, settings: Settings) -> dict[str, str]:
    """Exempt the nodes of a job that runs: its ranks have found each other, and their nodes may have no other name."""
    return exempt_in_job(cluster, settings) or exempt_without_peers(cluster, settings)


FACTS = (
    Fact(HostNameFacts, (HOST_NAME,), host_name),
    Fact(NameFacts, (NAMES,), names, questions=ask_names, exempt=exempt_names),
)
