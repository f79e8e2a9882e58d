"""Whether all nodes reach each other in a subnet and, if not, a short statement of each fault.

Nothing is concluded from links that were not tried, or about a node whose own links could not be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache

from ncheck.facts.links import Burst, Link, LinkCause, LinkFacts, addresses_to_try
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts, SubnetAddress
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import Inconclusive
from ncheck.model.cluster import Cluster
from ncheck.network.link_matrix import (
    CONNECT,
    CUT,
    LARGE,
    Fold,
    Known,
    PathMatrix,
    Shape,
    Tried,
    folded,
    joined,
    pairs_to_try,
)
from ncheck.network.subnets import Nodes, best_first, clashing, machines, shared, subnet_addresses


class FaultKind(str, Enum):
    """The kind of a fault; each kind has its own check."""

    REFUSED = "refused"
    FILTERED = "filtered"
    UNROUTABLE = "unroutable"
    ONE_WAY = "one-way"
    LARGE_LOST = "large-lost"
    CUT = "cut"
    PARTLY = "partly"  # a part of the connections gets no answer, the others are quick


@dataclass(frozen=True)
class SubnetFault:
    """One fault of a subnet. `nodes`: those at fault by the evidence; in a tie, both sides.

    `left` and `right` are the two sides, as nodes: see link_matrix.Shape.
    """

    subnet: str
    trouble: FaultKind
    shape: Shape
    summary: str
    nodes: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    links: tuple[Tried, ...]

    @property
    def pairs(self) -> frozenset[frozenset[str]]:
        """The pairs of nodes between which something is broken."""
        return frozenset(frozenset((tried.node, tried.link.target)) for tried in self.links)


@dataclass(frozen=True)
class Carries:
    """Whether all members of a subnet reach each other there, in both directions and with large messages.

    `whole` is None if that is unknown; `why` says why it is not True.
    """

    whole: bool | None
    why: str = ""


def carries(known: Known, subnet: str, members: Collection[str]) -> Carries:
    """Tell whether these nodes reach each other in a subnet. `known`: the links of the nodes whose links were read.

    The subnet "" stands for any connection between them: routers, or a subnet that two of them share.
    """
    if len(members) < 2:  # noqa: PLR2004  at least two nodes
        return Carries(whole=True)
    found = faults(known, subnet, members) if subnet else _apart(known, members)
    if found:
        more = f"; and {len(found) - 2} more" if len(found) > 2 else ""  # noqa: PLR2004  two are enough
        return Carries(whole=False, why="; ".join(fault.summary for fault in found[:2]) + more)
    why = _not_known(known, subnet, members) if subnet else _not_joined(known, members)
    return Carries(None if why else True, why)


def carrying(known: Known, nodes: Nodes) -> tuple[str, ...]:
    """Return the subnets that all these nodes share and that are not known to be broken, the best first."""
    return tuple(subnet for subnet in best_first(shared(nodes)) if carries(known, subnet, nodes).whole is not False)


def _apart(known: Known, members: Collection[str]) -> tuple[SubnetFault, ...]:
    """Return the faults that leave some pair of nodes without any connection."""
    heard = {node: facts for node, facts in known.items() if node in members}
    lost = {pair for pair, good in joined(heard).items() if not good}
    found = (fault for subnet in subnets_tried(heard) for fault in faults(heard, subnet, members))
    return tuple(fault for fault in found if fault.pairs & lost)


def _not_joined(known: Known, members: Collection[str]) -> str:
    if silent := [node for node in members if node not in known]:
        return f"the links of {fold(silent)} could not be read"
    found = joined(known)
    pairs = [pair for pair in pairs_to_try({node: known[node] for node in members}) if not found.get(frozenset(pair))]
    unknown = {node for pair in pairs for node in pair}
    return f"not all links between {fold(unknown)} were tested" if unknown else ""


def _not_known(known: Known, subnet: str, members: Collection[str]) -> str:
    if silent := [node for node in members if node not in known]:
        return f"the links of {fold(silent)} could not be read"
    found = doubt(known, subnet, members)
    return found.reason if found else ""


def doubts(known: Known, nodes: Nodes) -> Iterator[Inconclusive]:
    """Yield what is unknown between the nodes whose links were read, subnet by subnet.

    What a node should have tried is seen from its addresses and those of the others, never from its own answer.
    """
    heard = {node: nics for node, nics in nodes.items() if node in known}
    members: dict[str, dict[str, None]] = {subnet: {} for subnet in subnets_tried(known)}
    for node, addresses in addresses_to_try(heard, heard).items():
        for address in addresses:
            members.setdefault(address.subnet, {})[node] = None
    for subnet, names in members.items():
        if found := doubt(known, subnet, names if subnet else known):
            yield found
    if heard and not shared(heard):
        linked = joined(known)
        pairs = pairs_to_try({node: known[node] for node in heard})
        ends = tuple(dict.fromkeys(node for pair in pairs if frozenset(pair) not in linked for node in pair))
        if ends:
            yield Inconclusive(f"not all links between {fold(ends)} were tested", ends)


def subnets_tried(known: Known) -> tuple[str, ...]:
    """Return every subnet in which some node tried a link, in the order in which they first occur."""
    found: dict[str, None] = {}
    for facts in known.values():
        found |= dict.fromkeys(reach.subnet for reach in facts.reaches)
        found |= dict.fromkeys(link.subnet for link in facts.broken)
    return tuple(found)


def faults(known: Known, subnet: str, members: Collection[str]) -> tuple[SubnetFault, ...]:
    """Return the faults of one subnet; every broken link among the members belongs to exactly one."""
    return _faults(tuple((node, facts) for node, facts in known.items() if node in members), subnet)


@lru_cache(maxsize=64)  # many checks ask about the same links
def _faults(links: tuple[tuple[str, LinkFacts], ...], subnet: str) -> tuple[SubnetFault, ...]:
    known = dict(links)
    seen = {link.cause for facts in known.values() for link in facts.broken if link.subnet == subnet}
    partly = _lost_flows(PathMatrix(known, subnet, known, CONNECT))
    ends = frozenset(end for ends, _ in partly for end in ends)
    nets = (PathMatrix(known, subnet, known, causes, ends) for causes in (CONNECT, LARGE, CUT) if causes & seen)
    found = (fault for net in nets if net.broken for fault in _FaultFinder(net).faults())
    return (*(fault for _, fault in partly), *found)


def _lost_flows(net: PathMatrix) -> list[tuple[tuple[str, ...], SubnetFault]]:
    """Return the faults of endpoints that lose some of several connections each time, with these endpoints.

    The end that the most others share is at fault; of two that meet nobody else, both are named.
    """
    seen: dict[frozenset[str], list[tuple[str, Burst]]] = {}
    for node, facts in net.heard.items():
        for burst in facts.bursts:
            if burst.subnet == net.subnet and burst.target in net.heard and burst.of_flows:
                ends = net.endpoint(node, burst.source), net.endpoint(burst.target, burst.address)
                if net.endpoints.keys() >= set(ends):  # a node may say anything of addresses that nobody has
                    seen.setdefault(frozenset(ends), []).append((node, burst))
    found: list[tuple[tuple[str, ...], SubnetFault]] = []
    while seen:
        shared = Counter(end for pair in seen for end in sorted(pair))
        worst, count = shared.most_common(1)[0]
        pairs = [pair for pair in seen if worst in pair]
        blamed = (worst,) if count > 1 else tuple(sorted(pairs[0]))
        bursts = [burst for pair in pairs for burst in seen.pop(pair)]
        if sum(burst.lost for _, burst in bursts) >= _LEAST_FLOWS:
            found.append((blamed, _flows_lost(net, blamed, bursts)))
    return found


_LEAST_FLOWS = 3  # connections that get no answer: fewer may be chance


def _flows_lost(net: PathMatrix, blamed: tuple[str, ...], bursts: list[tuple[str, Burst]]) -> SubnetFault:
    lost, begun = sum(burst.lost for _, burst in bursts), sum(burst.begun for _, burst in bursts)
    between = f"from and to {blamed[0]}" if len(blamed) == 1 else f"between {' and '.join(blamed)}"
    summary = (
        f"{lost} of {begun} connections {between} {_where(net.subnet)} get no answer, the others are quick: "
        "a part of the flows is lost (one leg of a bond, one path)"
    )
    links = tuple(
        Tried(
            node,
            Link(
                burst.source, burst.target, burst.address, burst.subnet, LinkCause.FILTERED,
                f"{burst.lost} of {burst.begun} connections that began at once",
            ),
        )
        for node, burst in bursts
    )  # fmt: skip
    nodes = tuple(dict.fromkeys(net.endpoints[end] for end in blamed))
    return SubnetFault(net.subnet, FaultKind.PARTLY, Shape.CUT_OFF, summary, nodes, nodes, (), links)


def doubt(known: Known, subnet: str, members: Collection[str]) -> Inconclusive | None:
    """Say which links among the members were not tried, and by which nodes; None if all were.

    The members of the subnet "" are all nodes: which of them must try each other there is seen from their links.
    """
    return _doubt(tuple((node, facts) for node, facts in known.items() if node in members), subnet)


@lru_cache(maxsize=64)
def _doubt(links: tuple[tuple[str, LinkFacts], ...], subnet: str) -> Inconclusive | None:
    net = PathMatrix(dict(links), subnet, dict(links), CONNECT)
    idle = tuple(node for node, _ in links if node not in net.addresses) if subnet and len(links) > 1 else ()
    if idle:
        return Inconclusive(f"{fold(idle)} tested no link {_where(subnet)}", idle)
    dark = net.dark
    ends = {node for pair in dark for node in pair}
    trying = tuple(dict.fromkeys(node for node, _ in dark))
    return Inconclusive(f"not all links between {fold(ends)} were tested {_where(subnet)}", trying) if dark else None


@dataclass(frozen=True)
class _FaultFinder:
    """Turns one matrix into faults."""

    net: PathMatrix

    def faults(self) -> Iterator[SubnetFault]:
        """Yield the faults; nodes with the same fault share one."""
        groups: dict[tuple[object, ...], list[Fold]] = {}
        for number, found in enumerate(
            folded(self.net.endpoints, frozenset(self.net.broken), self.net.good, self.net.asked)
        ):
            one_sided = found.shape in (Shape.CUT_OFF, Shape.UNREACHED, Shape.MUTE)
            key = (found.shape, self._cause(found), self._all(found)) if one_sided else (number,)
            groups.setdefault(key, []).append(found)
        for group in groups.values():
            yield self._fault(group)

    def _fault(self, group: list[Fold]) -> SubnetFault:
        first, trouble, where = group[0], self._trouble(group[0]), _where(self.net.subnet)
        left = [name for member in group for name in member.left]
        links = tuple(tried for member in group for path in sorted(member.paths) for tried in self.net.broken[path])
        sentence = _SENTENCES[trouble][first.shape].format(left=fold(left), right=fold(first.right), on=where)
        tail = "" if self._whole(first) else ", as far as it was tested"
        return SubnetFault(
            subnet=self.net.subnet,
            trouble=trouble,
            shape=first.shape,
            summary=f"{sentence}{tail}: {_causes(links)}",
            nodes=self._nodes(name for member in group for name in member.blamed),
            left=self._nodes(left),
            right=self._nodes(first.right),
            links=links,
        )

    def _nodes(self, endpoints: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.net.endpoints[endpoint] for endpoint in endpoints))

    def _cause(self, found: Fold) -> LinkCause:
        """Return the most frequent cause of the links."""
        causes = Counter(tried.link.cause for path in sorted(found.paths) for tried in self.net.broken[path])
        return causes.most_common(1)[0][0]

    def _whole(self, found: Fold) -> bool:
        """Tell whether a statement is about links that were all tried."""
        if self.net.asked is None:
            return bool(found.right) or self._all(found)
        ways = 2 if found.shape is Shape.PARTS else 1
        return bool(found.right) and len(found.paths) == ways * len(found.left) * len(found.right)

    def _all(self, found: Fold) -> bool:
        """Tell whether everything about the left side is known."""
        nodes = set(self._nodes(found.left))
        return not any(nodes.intersection(pair) for pair in self.net.dark)

    def _trouble(self, found: Fold) -> FaultKind:
        if self.net.causes == LARGE:
            return FaultKind.LARGE_LOST
        if self.net.causes == CUT:
            return FaultKind.CUT
        return FaultKind.ONE_WAY if found.shape is Shape.ONE_WAY else FaultKind(self._cause(found).value)


def _where(subnet: str) -> str:
    return f"on {subnet}" if subnet else "across the routers"


_CAUSES = {
    LinkCause.REFUSED: "refused",
    LinkCause.FILTERED: "no answer",
    LinkCause.UNROUTABLE: "no route",
    LinkCause.LARGE_LOST: "small packets pass",
    LinkCause.LARGE_LOST_BACK: "small packets pass",
    LinkCause.CUT: "connection cut",
    LinkCause.STRANGER: "another host answers",
}


def _causes(links: tuple[Tried, ...]) -> str:
    """Say how the links fail: "no answer", or "no answer (5), refused (1)"."""
    counted = Counter(_CAUSES[tried.link.cause] for tried in links).most_common()
    if len(counted) == 1:
        return counted[0][0]
    return ", ".join(f"{cause} ({count})" for cause, count in counted)


_CONNECT_SENTENCES = {
    Shape.NOBODY: "no node reaches another one {on}",
    Shape.CUT_OFF: "{left} cannot reach any node {on}, and no node can reach it",
    Shape.UNREACHED: "{left} cannot be reached {on} by any node",
    Shape.MUTE: "{left} cannot reach any node {on}",
    Shape.PARTS: "{left} and {right} cannot reach each other {on}",
    Shape.ONE_WAY: "{right} reaches {left} {on}, but {left} does not reach {right}",
    Shape.FORTH: "{left} cannot reach {right} {on}",
}

_LARGE_SENTENCES = {
    Shape.NOBODY: "large packets are lost {on} between all nodes",
    Shape.CUT_OFF: "large packets from and to {left} are lost {on}, for every other node",
    Shape.UNREACHED: "large packets to {left} are lost {on}, from every other node",
    Shape.MUTE: "large packets from {left} are lost {on}, to every other node",
    Shape.PARTS: "large packets between {left} and {right} are lost {on}, in both directions",
    Shape.ONE_WAY: "large packets from {left} to {right} are lost {on}, but not from {right} to {left}",
    Shape.FORTH: "large packets from {left} to {right} are lost {on}",
}

_CUT_SENTENCES = {
    Shape.NOBODY: "no connection between any nodes lasts {on}",
    Shape.CUT_OFF: "no connection from or to {left} lasts {on}",
    Shape.UNREACHED: "no connection to {left} lasts {on}",
    Shape.MUTE: "no connection from {left} lasts {on}",
    Shape.PARTS: "no connection between {left} and {right} lasts {on}",
    Shape.ONE_WAY: "connections from {left} to {right} do not last {on}, but those from {right} to {left} do",
    Shape.FORTH: "connections from {left} to {right} do not last {on}",
}

_SENTENCES: Mapping[FaultKind, Mapping[Shape, str]] = {
    **dict.fromkeys(FaultKind, _CONNECT_SENTENCES),
    FaultKind.LARGE_LOST: _LARGE_SENTENCES, FaultKind.CUT: _CUT_SENTENCES,
}  # fmt: skip

ADDRESS_FACTS = (LinkFacts, IdentityFacts)  # the facts that best_addresses reads besides NicFacts


def best_addresses(cluster: Cluster) -> dict[str, tuple[SubnetAddress, ...]]:
    """Return the addresses at which others can reach each node, the best first, without those that other nodes have.

    The check must declare NicFacts and ADDRESS_FACTS. A node whose interfaces were not read has no addresses.
    """
    nodes = cluster.facts(NicFacts)
    single = machines(nodes, cluster.facts(IdentityFacts))
    subnets, clashes = carrying(cluster.facts(LinkFacts), single), clashing(single)
    rank = {subnet: number for number, subnet in enumerate(subnets)}
    own = {node: [a for a in subnet_addresses(nics) if a.ip not in clashes] for node, nics in nodes.items()}
    return {
        node.name: tuple(sorted(own.get(node.name, ()), key=lambda address: rank.get(address.subnet, len(rank))))
        for node in cluster
    }
