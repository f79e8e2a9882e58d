"""What names resolve to on each node: its own hostname, and the names of the listed nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import OPTIONAL, Count, Maybe, Seconds, Words
from ncheck.facts.definition import Fact, exempt_in_job, exempt_without_peers
from ncheck.facts.ssh_peers import launch_origin
from ncheck.hostlist import is_v6, quoted
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, JsonValue
from ncheck.model.phase import NotAsked, Questions
from ncheck.network.ssh_edges import edges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ncheck.model.cluster import Cluster
    from ncheck.model.node import Node
    from ncheck.settings import Settings


@dataclass(frozen=True)
class SilentAddress:
    """An address that does not answer. `line`: that of /etc/hosts, from 1, which names it; 0 if none does."""

    ip: Annotated[str, _address]
    line: Count = 0


@dataclass(frozen=True)
class Resolved:
    """The addresses of a name. `addresses` are in the resolver's order, in which programs try them. `error`: the
    resolver's message where there is no address. `late`: the resolver did not answer in time. `seconds`: how long it
    needed, 0 where it was quick. `silent`: the addresses that do not answer on the node, where another one does.
    """

    addresses: tuple[str, ...] = ()
    error: str = ""
    late: bool = False
    seconds: float = 0.0
    silent: tuple[SilentAddress, ...] = ()


@dataclass(frozen=True)
class HostNameFacts:
    """The node's own name (gethostname), and what it resolves to on the node itself."""

    name: str
    leads_to: Annotated[Resolved, resolved]


@dataclass(frozen=True)
class NameFacts:
    """What the names of other nodes resolve to on this node: those that a launch would look up here."""

    names: Mapping[str, Annotated[Resolved, resolved]]

    def among(self, names: frozenset[str]) -> NameFacts:
        """Return the names of these nodes."""
        return NameFacts({name: resolved for name, resolved in self.names.items() if name in names})


@dataclass(frozen=True)
class LookedUp:
    """The addresses, in the resolver's order; or its error; or that it did not answer in time."""

    addresses: Maybe[tuple[Annotated[str, _address], ...]] = None
    error: Maybe[Words] = None
    late: Annotated[bool, OPTIONAL] = False
    seconds: Annotated[Seconds, OPTIONAL] = 0.0
    silent: Annotated[tuple[SilentAddress, ...], OPTIONAL] = ()


def resolved(what: LookedUp) -> Resolved:
    """Return what a name resolves to. Raises ValueError for an answer that says nothing."""
    if what.late:
        return Resolved(late=True, seconds=what.seconds)
    if what.error is not None:
        return Resolved(error=what.error or "it does not resolve", seconds=what.seconds)
    if what.addresses is None:
        raise ValueError("neither addresses nor an error")
    if not what.addresses:
        return Resolved(error="it resolves to no address")
    return Resolved(what.addresses, seconds=what.seconds, silent=what.silent)


HOST_NAME = Answer("host-name", shape=HostNameFacts)
NAMES = Answer("names", shape=NameFacts)


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
    Fact(HostNameFacts, (HOST_NAME,)),
    Fact(NameFacts, (NAMES,), questions=ask_names, exempt=exempt_names),
)
