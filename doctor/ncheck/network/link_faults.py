"""What the nodes' links say together: whether a subnet really carries, and what is wrong with it in few words.

Pure. Nothing is concluded from what was not tried, nor from a node whose own links could not be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import combinations

from ncheck.facts.links import LinkCause, LinkFacts
from ncheck.hostlist import fold
from ncheck.model.check import Inconclusive
from ncheck.network.link_matrix import CONNECT, CUT, LARGE, Fold, Known, Matrix, Shape, Tried, folded, joined
from ncheck.network.subnets import Nodes, best_first, shared


class Trouble(str, Enum):
    """What a sentence is about; each has a check of its own."""

    REFUSED = "refused"
    FILTERED = "filtered"
    UNROUTABLE = "unroutable"
    ONE_WAY = "one-way"
    LARGE_LOST = "large-lost"
    CUT = "cut"


@dataclass(frozen=True)
class Fault:
    """One sentence about one subnet. `nodes` are those that the evidence singles out, in a tie both sides.

    `left` and `right` are the sides of the sentence, as nodes: see folding.Shape.
    """

    subnet: str
    trouble: Trouble
    shape: Shape
    told: str
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
    """Whether all members of a subnet reach each other there, both ways and with large messages too.

    `whole` is None where it is not known; `why` says why it is not True.
    """

    whole: bool | None
    why: str = ""


def carries(known: Known, subnet: str, members: Collection[str]) -> Carries:
    """Tell whether a subnet carries among these nodes. `known` holds the links of those whose links were read.

    "" stands for whatever joins them: routers, and for those that share a subnet that one.
    """
    if len(members) < 2:  # noqa: PLR2004  it takes two
        return Carries(whole=True)
    found = faults(known, subnet, members) if subnet else _apart(known, members)
    if found:
        more = f"; and {len(found) - 2} more" if len(found) > 2 else ""  # noqa: PLR2004  two sentences are enough
        return Carries(whole=False, why="; ".join(fault.told for fault in found[:2]) + more)
    why = _not_known(known, subnet, members) if subnet else _not_joined(known, members)
    return Carries(None if why else True, why)


def carrying(known: Known, nodes: Nodes) -> tuple[str, ...]:
    """Return the subnets that all these nodes share and that are not known to be broken among them, the best first."""
    return tuple(subnet for subnet in best_first(shared(nodes)) if carries(known, subnet, nodes).whole is not False)


def _apart(known: Known, members: Collection[str]) -> tuple[Fault, ...]:
    """Return the faults that leave some pair with no way at all."""
    heard = {node: facts for node, facts in known.items() if node in members}
    lost = {pair for pair, good in joined(heard).items() if not good}
    found = (fault for subnet in subnets_tried(heard) for fault in faults(heard, subnet, members))
    return tuple(fault for fault in found if fault.pairs & lost)


def _not_joined(known: Known, members: Collection[str]) -> str:
    if silent := [node for node in members if node not in known]:
        return f"the links of {fold(silent)} could not be read"
    found = joined(known)
    dark = {node for one, other in combinations(members, 2) if not found.get(frozenset((one, other)))
            for node in (one, other)}  # fmt: skip
    return f"not all links between {fold(dark)} were tried" if dark else ""


def _not_known(known: Known, subnet: str, members: Collection[str]) -> str:
    if silent := [node for node in members if node not in known]:
        return f"the links of {fold(silent)} could not be read"
    if found := doubt(known, subnet, members):
        return found.reason
    addresses = Matrix(known, subnet, members, CONNECT).addresses
    idle = [node for node in members if node not in addresses]
    return f"{fold(idle)} tried no link {_where(subnet)}" if idle else ""


def subnets_tried(known: Known) -> tuple[str, ...]:
    """Return every subnet of which some node tells, in the order in which they come."""
    told = [name for facts in known.values() for name in (*(reach.subnet for reach in facts.reaches),
                                                          *(link.subnet for link in facts.broken))]  # fmt: skip
    return tuple(dict.fromkeys(told))


def faults(known: Known, subnet: str, members: Collection[str]) -> tuple[Fault, ...]:
    """Return the sentences about one subnet; every broken link among the members is in exactly one of them."""
    return _faults(tuple((node, facts) for node, facts in known.items() if node in members), subnet)


@lru_cache(maxsize=64)  # many checks ask about the same links
def _faults(heard: tuple[tuple[str, LinkFacts], ...], subnet: str) -> tuple[Fault, ...]:
    known = dict(heard)
    nets = (Matrix(known, subnet, known, causes) for causes in (CONNECT, LARGE, CUT))
    return tuple(fault for net in nets if net.broken for fault in _Teller(net).faults())


def doubt(known: Known, subnet: str, members: Collection[str]) -> Inconclusive | None:
    """Say which links among the members were left out, and by which nodes; None where none was."""
    return _doubt(tuple((node, facts) for node, facts in known.items() if node in members), subnet)


@lru_cache(maxsize=64)
def _doubt(heard: tuple[tuple[str, LinkFacts], ...], subnet: str) -> Inconclusive | None:
    dark = Matrix(dict(heard), subnet, dict(heard), CONNECT).dark
    ends = {node for way in dark for node in way}
    trying = tuple(dict.fromkeys(node for node, _ in dark))
    return Inconclusive(f"not all links between {fold(ends)} were tried {_where(subnet)}", trying) if dark else None


@dataclass(frozen=True)
class _Teller:
    """Makes sentences of one matrix."""

    net: Matrix

    def faults(self) -> Iterator[Fault]:
        """Yield the sentences; nodes of which the same is to be said share one."""
        groups: dict[tuple[object, ...], list[Fold]] = {}
        for number, found in enumerate(folded(self.net.places, frozenset(self.net.broken), self.net.good)):
            alone = found.shape in (Shape.CUT_OFF, Shape.UNREACHED, Shape.MUTE)
            key = (found.shape, self._cause(found), self._all(found)) if alone else (number,)
            groups.setdefault(key, []).append(found)
        for group in groups.values():
            yield self._fault(group)

    def _fault(self, group: list[Fold]) -> Fault:
        first, trouble, where = group[0], self._trouble(group[0]), _where(self.net.subnet)
        left = [name for one in group for name in one.left]
        links = tuple(tried for one in group for way in sorted(one.ways) for tried in self.net.broken[way])
        said = _SENTENCES[trouble][first.shape].format(left=fold(left), right=fold(first.right), on=where)
        tail = "" if first.right or self._all(first) else ", as far as it was tried"
        return Fault(
            subnet=self.net.subnet,
            trouble=trouble,
            shape=first.shape,
            told=f"{said}{tail}: {_causes_told(links)}",
            nodes=self._nodes(name for one in group for name in one.blamed),
            left=self._nodes(left),
            right=self._nodes(first.right),
            links=links,
        )

    def _nodes(self, places: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.net.places[place] for place in places))

    def _cause(self, found: Fold) -> LinkCause:
        """Return what most of the links show."""
        causes = Counter(tried.link.cause for way in sorted(found.ways) for tried in self.net.broken[way])
        return causes.most_common(1)[0][0]

    def _all(self, found: Fold) -> bool:
        """Tell whether everything about the left side is known."""
        nodes = set(self._nodes(found.left))
        return not any(nodes & {one, other} for one, other in self.net.dark)

    def _trouble(self, found: Fold) -> Trouble:
        if self.net.causes == LARGE:
            return Trouble.LARGE_LOST
        if self.net.causes == CUT:
            return Trouble.CUT
        return Trouble.ONE_WAY if found.shape is Shape.ONE_WAY else Trouble(self._cause(found).value)


def _where(subnet: str) -> str:
    return f"on {subnet}" if subnet else "across the routers"


_CAUSES = {
    LinkCause.REFUSED: "refused",
    LinkCause.FILTERED: "no answer",
    LinkCause.UNROUTABLE: "no way there",
    LinkCause.LARGE_LOST: "small ones pass",
    LinkCause.LARGE_LOST_BACK: "small ones pass",
    LinkCause.CUT: "cut in the middle",
    LinkCause.STRANGER: "something else answers there",
}


def _causes_told(links: tuple[Tried, ...]) -> str:
    """Say how the links fail: "no answer", or "no answer (5 links), refused (1)"."""
    counted = Counter(_CAUSES[tried.link.cause] for tried in links).most_common()
    if len(counted) == 1:
        return counted[0][0]
    return ", ".join(f"{cause} ({count})" for cause, count in counted)


_CONNECT_SENTENCES = {
    Shape.NOBODY: "nobody reaches anybody {on}",
    Shape.CUT_OFF: "{left} reaches nobody {on}, and nobody reaches it",
    Shape.UNREACHED: "{left} cannot be reached {on} by anyone",
    Shape.MUTE: "{left} reaches nobody {on}",
    Shape.PARTS: "{left} and {right} cannot reach each other {on}",
    Shape.ONE_WAY: "{right} reaches {left} {on} and not the other way round",
    Shape.FORTH: "{left} cannot reach {right} {on}",
}


_LARGE_SENTENCES = {
    Shape.NOBODY: "large packets are lost {on} between all nodes",
    Shape.CUT_OFF: "large packets from and to {left} are lost {on}, whoever the other end is",
    Shape.UNREACHED: "large packets to {left} are lost {on}, whoever sends them",
    Shape.MUTE: "large packets from {left} are lost {on}, whoever they are for",
    Shape.PARTS: "large packets between {left} and {right} are lost {on}, both ways",
    Shape.ONE_WAY: "large packets from {left} to {right} are lost {on}, and not the other way round",
    Shape.FORTH: "large packets from {left} to {right} are lost {on}",
}


_CUT_SENTENCES = {
    Shape.NOBODY: "no connection between any nodes lasts {on}",
    Shape.CUT_OFF: "no connection from or to {left} lasts {on}",
    Shape.UNREACHED: "no connection to {left} lasts {on}, whoever opens it",
    Shape.MUTE: "no connection from {left} lasts {on}",
    Shape.PARTS: "no connection between {left} and {right} lasts {on}",
    Shape.ONE_WAY: "connections from {left} to {right} do not last {on}, and the other way round they do",
    Shape.FORTH: "connections from {left} to {right} do not last {on}",
}


_SENTENCES: Mapping[Trouble, Mapping[Shape, str]] = {
    **dict.fromkeys(Trouble, _CONNECT_SENTENCES), Trouble.LARGE_LOST: _LARGE_SENTENCES, Trouble.CUT: _CUT_SENTENCES,
}  # fmt: skip
