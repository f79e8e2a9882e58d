"""Where nodes are slow together although each pair of them is well: at a node, or between two groups of nodes.

What is measured next is a pure function of what was measured: the search is written as if it could ask at once, and is
gone through again from its beginning after each round. Groups are measured by themselves first. A slow one is halved
until nodes are left that are slow with others of their own group. Then a few nodes of each group represent it: if they
are slow together, halving leaves two groups, and these are compared with all others.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil, isqrt, sqrt
from statistics import mean, median_high
from typing import TypeVar

from ncheck.lazy_dataclass import dataclass
from ncheck.probe.facts import Groups
from ncheck.probe.search import GUESSED_NOISE

T = TypeVar("T")
Nodes = tuple[str, ...]

# What sets of nodes reached each time, as shares of what is usual; 0 where it failed.
Shares = Mapping[frozenset[str], Sequence[float]]

# It is sent whether each of these sets is slow, and returns what it found.
Search = Generator[Sequence[Nodes], list[bool], T]

FEW = 2  # groups or nodes: fewer have nothing between them
LEAST_GUESSED = 3  # groups: of fewer that nobody named, nothing is claimed
LEAST_NODES = 4  # of fewer, no groups can show anything: see can_answer
_STARTS = 4  # places in a slow group where nodes that are well together are looked for
SURE = 4.0  # standard errors below the usual, by which a set is slow at once: what follows shows whether it is
TRIED = 4  # measurements of one set, after which their mean decides


@dataclass(frozen=True)
class Limits:
    """A set is slow if its mean is below `slow`. Its first measurement decides if it is at least `clear`, or far below.

    `alone`: the first measurement may show that a set is slow; over CPUs a busy machine may be the reason.
    """

    slow: float = 0.775
    clear: float = 0.875
    alone: bool = True

    def low(self, shares: Sequence[float]) -> bool | None:
        """Return whether a set is slow, None if it has to be measured once more."""
        number = len(shares)
        if not number:
            return None
        reached, error = mean(shares), 1 / sqrt(number)
        if reached >= self.slow + (self.clear - self.slow) * error or number >= TRIED:
            return reached < self.slow
        sure = reached < min(self.slow, (1 - SURE * GUESSED_NOISE * error) * self.slow / Limits.slow)
        return True if sure and (self.alone or number > 1) else None


BY_LINKS = Limits()
OVER_SOCKETS = Limits(slow=0.5, clear=0.6, alone=False)


@dataclass(frozen=True)
class Boundary:
    """Two parts of the nodes, by the names of their groups: each is well by itself, and all that crosses is slow.

    Without an `other` part, all that crosses from any of the groups to another one is slow. `least`: nodes on each side
    that it takes to show it.
    """

    one: Nodes
    other: Nodes = ()
    least: int = 1

    def crossed_by(self, nodes: Collection[str], groups: Groups) -> bool | None:
        """Return whether these nodes lie on both sides; None if they do, but are too few to show it."""
        there = {name: count for name, own in groups.items() if (count := len(set(own).intersection(nodes)))}
        one, other = (sum(there.get(name, 0) for name in side) for side in (self.one, self.other))
        if not self.other:
            one, *others = sorted((there.get(name, 0) for name in self.one), reverse=True)
            other = sum(others)
        return bool(one and other) and (min(one, other) >= self.least or None)


@dataclass(frozen=True)
class BadNode:
    """A node with which others of its own group are slow. `witnesses`: those others, well among themselves."""

    node: str
    witnesses: Nodes


@dataclass(frozen=True)
class Found:
    """What the search knows so far. `wanted`: sets to measure next, () at the end. `unsure`: something is slow that is
    not explained.
    """

    wanted: tuple[Nodes, ...] = ()
    boundaries: tuple[Boundary, ...] = ()
    nodes: tuple[BadNode, ...] = ()
    unsure: bool = False

    @property
    def explained(self) -> bool:
        """Whether there is an answer."""
        return bool(self.boundaries or self.nodes)


def blocks(names: Sequence[str]) -> Groups:
    """Return groups of neighbours in the inventory, about as many as each has nodes: who shares a switch is unknown."""
    size = max(FEW, ceil(len(names) / max(1, isqrt(len(names)))))
    return {names[first]: tuple(names[first : first + size]) for first in range(0, len(names), size)}


def can_answer(groups: Groups, *, guessed: bool = False, least: int = FEW) -> bool:
    """Return whether these groups may show anything at all: between two of them, or a node within one.

    Two of them need other nodes that show the same; a node needs others of its group that are well without it.
    """
    sizes = [len(nodes) for nodes in groups.values()]
    between = sum(size >= FEW * ceil(least / FEW) for size in sizes) >= FEW
    return (between or max(sizes, default=0) > least) and len(groups) >= (LEAST_GUESSED if guessed else FEW)


def as_shares(reached: Shares, groups: Groups, *, expected: bool) -> Shares:
    """Return what sets reached as shares of what groups usually reach by themselves.

    `expected`: they are shares of what the links should give. Then what reaches that is not slow, whatever others do.
    """
    inside = [mean(of) for nodes in groups.values() if (of := reached.get(frozenset(nodes)))]
    if not inside:
        return reached
    usual = min(median_high(inside), 1.0) if expected else median_high(inside)
    return {nodes: [one / usual for one in of] for nodes, of in reached.items()} if usual else reached


def find(
    groups: Groups, shares: Shares, limits: Limits = BY_LINKS, *, guessed: bool = False, least: int = FEW
) -> Found:
    """Return what makes all nodes slow together, or what has to be measured next.

    `guessed`: the groups are only neighbours in the inventory. `least`: sets of fewer nodes cannot be compared.
    """
    return _found(_search(groups, guessed=guessed, least=least), shares, limits, groups)


def find_by_pairs(groups: Groups, suspects: Sequence[tuple[str, str]], shares: Shares) -> Found:
    """Return the same where only pairs can be measured. `suspects`: pairs of groups between which some are slow."""
    return _found(_search_pairs(groups, suspects), shares, OVER_SOCKETS, groups)


def most_tests(groups: Groups) -> int:
    """Return after how many measurements the search gives up: 60 for 16 groups of 16 nodes."""
    return len(groups) + 3 * sum(map(len, groups.values())).bit_length() + 17


def _found(search: Search[Found], shares: Shares, limits: Limits, groups: Groups) -> Found:
    """Go through a search with what is known, up to where it asks for more."""
    try:
        asked = next(search)
        while True:
            lows = [limits.low(shares.get(frozenset(nodes), ())) for nodes in asked]
            if wanted := [nodes for nodes, low in zip(asked, lows, strict=True) if low is None]:
                next_sets = tuple(_disjoint(wanted))
                many = sum(map(len, shares.values())) + len(next_sets) > most_tests(groups)
                return Found(unsure=True) if many else Found(next_sets)
            asked = search.send([bool(low) for low in lows])
    except StopIteration as stop:
        found: Found = stop.value
        wrong = found.explained and not _consistent(found, shares, limits, groups)
        return Found(unsure=True) if wrong else found


def _disjoint(sets: Iterable[Nodes]) -> Iterable[Nodes]:
    """Return those that can be measured at the same time."""
    taken: set[str] = set()
    for nodes in sets:
        if taken.isdisjoint(nodes):
            taken.update(nodes)
            yield nodes


def _consistent(found: Found, shares: Shares, limits: Limits, groups: Groups) -> bool:
    """Return whether the answer explains all that was measured, as far as its means are clear."""
    bad = {one.node for one in found.nodes}
    for nodes, reached in shares.items():
        crossed = [one.crossed_by(nodes, groups) for one in found.boundaries]
        explained = not bad.isdisjoint(nodes) or True in crossed
        if (low := limits.low(reached)) is None or len(nodes) < FEW or low is explained:
            continue
        if not (low and found.unsure) and not (None in crossed and not explained):
            return False
    return True


# The search


def _search(groups: Groups, *, guessed: bool, least: int) -> Search[Found]:
    if not can_answer(groups, guessed=guessed, least=least):
        return Found(unsure=True)
    large = [name for name, nodes in groups.items() if len(nodes) >= least]
    lows = yield [groups[name] for name in large]
    good, bad, unsure = dict(groups), list[BadNode](), False
    slow = [name for name, low in zip(large, lows, strict=True) if low]
    if guessed and len(slow) > 1:
        return Found(unsure=True)
    for name in slow:
        found = yield from _within(groups[name], least, most=1 if guessed else len(groups[name]))
        bad += found or ()
        gone = {one.node for one in found or ()}
        good[name] = tuple(node for node in groups[name] if node not in gone and found is not None)
        unsure = unsure or found is None
    units = {name: nodes for name, nodes in good.items() if nodes}
    if guessed and (unsure or len(units) < LEAST_GUESSED):
        return Found(unsure=True)
    if guessed and bad:
        (low,) = yield (tuple(node for nodes in units.values() for node in nodes),)
        return Found(unsure=True) if low else Found((), (), tuple(bad))
    boundaries: list[Boundary] = []
    while len(units) >= FEW:
        pair = yield from _slow_pair(units, least)
        if not pair:
            break
        boundary = yield from _sides(units, *pair)
        if not boundary:
            unsure = True
            break
        boundaries.append(boundary)
        fewer = min((boundary.one, boundary.other or boundary.one), key=len)
        units = {name: nodes for name, nodes in units.items() if name not in fewer}
    if guessed and unsure:
        return Found(unsure=True)
    return Found((), tuple(boundaries), tuple(bad), unsure)


def _search_pairs(groups: Groups, suspects: Sequence[tuple[str, str]]) -> Search[Found]:
    boundaries: list[Boundary] = []
    for one, other in suspects:
        crossed = groups[one][0], groups[other][0]
        if any(boundary.crossed_by(crossed, groups) for boundary in boundaries):
            continue
        boundary = yield from _sides(groups, one, other, 1, by_pairs=True)
        if not boundary:
            return Found((), tuple(boundaries), unsure=True)
        boundaries.append(boundary)
    return Found((), tuple(boundaries))


def _within(nodes: Nodes, least: int, most: int) -> Search[list[BadNode] | None]:
    """Return the nodes of a slow group that make it slow; None where that is not found, or if they are too many."""
    found: list[BadNode] = []
    while len(found) < most:
        for start in range(min(len(nodes), _STARTS)):
            base = (*nodes[start:], *nodes[:start])
            (low,) = yield (base[:least],)
            if not low:
                break
        else:
            return None
        end = yield from _first([(node,) for node in base], least)
        suspect, near, far = base[end - 1], base[end - least : end - 1], base[: least - 1]
        if set(near) == set(far):
            far = base[1:least]
        lows = yield ((suspect, *near), (suspect, *far))
        if not all(lows):
            return None
        found.append(BadNode(suspect, tuple(dict.fromkeys((*near, *far)))))
        nodes = tuple(node for node in nodes if node != suspect)
        if len(nodes) < least:
            return None
        (low,) = yield (nodes,)
        if not low:
            return found
    return None


def _slow_pair(units: Groups, least: int) -> Search[tuple[str, str, int] | None]:
    """Return two groups that are slow with each other, and how many nodes of each show it; None if all are well."""
    names, most = tuple(units), max(map(len, units.values()))
    (low,) = yield (tuple(node for nodes in units.values() for node in nodes),)
    if not low:
        return None
    count = ceil(least / FEW)
    while count < most:
        (low,) = yield (tuple(node for nodes in units.values() for node in nodes[:count]),)
        if low:
            break
        count = min(2 * count, most)
    parts = [units[name][:count] for name in names]
    last = yield from _first(parts, 1)
    first = yield from _first(parts[: last - 1], 0, parts[last - 1])
    return names[first - 1], names[last - 1], count


def _first(parts: Sequence[Nodes], well: int, beside: Nodes = ()) -> Search[int]:
    """Return with how many of these parts it begins to be slow: not with `well` of them, but with all."""
    slow = len(parts)
    while slow - well > 1:
        middle = (well + slow) // 2
        (low,) = yield ((*(node for part in parts[:middle] for node in part), *beside),)
        well, slow = (well, middle) if low else (middle, slow)
    return slow


@dataclass(frozen=True)
class _Some:
    """So many nodes of each group; another `place` means others, as far as the group has them."""

    groups: Groups
    count: int

    def of(self, name: str, place: int = 0) -> Nodes:
        nodes = self.groups[name]
        return tuple(dict.fromkeys(nodes[(place * self.count + at) % len(nodes)] for at in range(self.count)))

    def together(self, pairs: Iterable[tuple[str, str]]) -> list[Nodes]:
        """Return some of both groups of each pair."""
        return [(*self.of(one, place), *self.of(other, place)) for place, (one, other) in enumerate(pairs)]


def _sides(units: Groups, one: str, other: str, count: int, *, by_pairs: bool = False) -> Search[Boundary | None]:
    """Return the boundary between two groups that are slow with each other; None if it is not sure.

    Other nodes of both must show it, too. Then each of the two is measured with all other groups at once, if not only
    pairs can be measured: mostly one of them is well with all.
    """
    some = _Some(units, count)
    if min(len(units[one]), len(units[other])) < FEW * count:
        return None
    if not all((yield some.together([(one, other)] * FEW))):
        return None
    others = tuple(name for name in units if name not in (one, other))
    rest = tuple(node for name in others for node in some.of(name))
    if not others:
        return Boundary((one,), (other,), count)
    lows = [True, True] if by_pairs else (yield ((*some.of(one), *rest), (*some.of(other, 1), *rest)))
    if not any(lows):
        return Boundary((one,), (other,), count)
    if all(lows):
        return (yield from _one_by_one(some, one, other, others))
    lonely, well = (one, other) if lows[0] else (other, one)
    lows = yield some.together((lonely, name) for name in others[:FEW])
    return Boundary((lonely,), (well, *others), count) if all(lows) else None


def _one_by_one(some: _Some, one: str, other: str, others: Nodes) -> Search[Boundary | None]:
    """Measure one of the two groups with each of the others, and the other with a few of them."""
    lows = yield some.together((one, name) for name in others)
    near = tuple(name for name, low in zip(others, lows, strict=True) if not low)
    far = tuple(name for name, low in zip(others, lows, strict=True) if low)
    by_near = yield some.together((other, name) for name in near[:FEW])
    by_far = yield some.together((other, name) for name in far[:FEW])
    if all(by_near) and not any(by_far):
        return Boundary((one, *near), (other, *far), some.count)
    if not far and not any(by_near):
        return Boundary((one,), (other,), some.count)
    if not (all(by_near) and all(by_far)):
        return None
    if near:
        return Boundary((other,), (one, *near, *far), some.count)
    lows = yield some.together(pairwise(far))
    if all(lows):
        return Boundary(tuple(some.groups), (), some.count)
    return None if any(lows) else Boundary((one,), (other, *far), some.count)
