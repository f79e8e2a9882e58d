"""From single ways that do not work to the fewest sentences that are true of all of them, and to whom they single out.

Pure: names, and pairs of names. A way from a to b is broken, good, or not known; nothing is concluded from the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

Way = tuple[str, str]
Partners = Mapping[bool, Mapping[str, set[str]]]


class Shape(str, Enum):
    """What a set of broken ways looks like. `left` and `right` of a Fold are the two sides that are named."""

    NOBODY = "nobody"  # no way works at all; left holds everyone
    CUT_OFF = "cut-off"  # left reaches nobody, and nobody reaches it
    UNREACHED = "unreached"  # nobody reaches left
    MUTE = "mute"  # left reaches nobody
    PARTS = "parts"  # left and right, each whole in itself or not, cannot reach each other
    ONE_WAY = "one-way"  # left does not reach right; right reaches left
    FORTH = "forth"  # left does not reach right; whether right reaches left is not known


@dataclass(frozen=True)
class Fold:
    """One sentence: the ways that it covers, and the names that it is about. `right` is empty for the first four.

    `blamed` are those that the evidence singles out; in a tie, both sides.
    """

    shape: Shape
    left: tuple[str, ...]
    right: tuple[str, ...]
    ways: frozenset[Way]
    blamed: tuple[str, ...]


def folded(names: Iterable[str], broken: frozenset[Way], good: frozenset[Way]) -> tuple[Fold, ...]:
    """Return sentences that cover every broken way once; names keep their order in all of them."""
    order = tuple(names)
    if not broken:
        return ()
    if len(order) > 2 and not good and len(broken) == len(order) * (len(order) - 1):  # noqa: PLR2004  of two, each is named
        return (Fold(Shape.NOBODY, order, (), broken, order),)
    return tuple(_Folding(order, broken, good).folds())


class _Folding:
    """What is left to tell shrinks from step to step."""

    def __init__(self, order: tuple[str, ...], broken: frozenset[Way], good: frozenset[Way]) -> None:
        self.order, self.broken, self.good = order, broken, good
        self.left = set(broken)
        self.rest = order  # who is not singled out
        self.working = _partners(good)

    def folds(self) -> Iterator[Fold]:
        yield from self.singled_out()
        yield from self.parts()
        yield from self.mutual()
        yield from self.one_way()

    def take(self, shape: Shape, sides: tuple[Iterable[str], Iterable[str]], ways: set[Way], blamed: set[str]) -> Fold:
        self.left -= ways
        left, right = (self.sorted(side) for side in sides)
        return Fold(shape, left, right, frozenset(ways), self.sorted(blamed))

    def sorted(self, names: Iterable[str]) -> tuple[str, ...]:
        held = set(names)
        return tuple(name for name in self.order if name in held)

    def singled_out(self) -> Iterator[Fold]:
        """Tell of those that nobody reaches, or that reach nobody, while the others do."""
        broken = _partners(self.broken)
        chosen = _needed({**dict(self._all_broken(broken, into=True)), **dict(self._all_broken(broken, into=False))})
        shapes: dict[str, Shape] = {}
        for name, deaf_too in chosen:
            shapes[name] = Shape.CUT_OFF if name in shapes else Shape.UNREACHED if deaf_too else Shape.MUTE
        for name in sorted(self.sorted(shapes), key=lambda name: list(Shape).index(shapes[name])):
            ways = set().union(*(chosen.get((name, into), ()) for into in (True, False))) & self.left
            if ways:
                yield self.take(shapes[name], ((name,), ()), ways, {name})
        self.rest = tuple(name for name in self.order if name not in shapes)

    def _all_broken(self, broken: Partners, *, into: bool) -> Iterator[tuple[tuple[str, bool], set[Way]]]:
        """Yield the names with the ways into (or out of) them where all that is known is broken, and the far ends are
        not at fault.

        One way says nothing of which end it is; of several, one far end at least has to work with somebody else.
        """
        for name in self.order:
            ends = broken[into].get(name, set())
            if len(ends) > 1 and name not in self.working[into] and not ends.isdisjoint(self.working[not into]):
                yield (name, into), {(end, name) if into else (name, end) for end in ends}

    def parts(self) -> Iterator[Fold]:
        """Tell of sides between which no way works: each against the rest, the smallest first."""
        pieces = sorted(_pieces(self.rest, self.left), key=len)
        while len(pieces) > 1:
            side, rest = pieces[0], set().union(*pieces[1:])
            ways = {way for one in side for other in rest for way in ((one, other), (other, one))}
            odd = len(side) < len(pieces[-1]) and self._hangs_together(pieces[-1])
            yield self.take(Shape.PARTS, (side, rest), ways, side if odd else side | rest)
            pieces = pieces[1:]

    def _hangs_together(self, piece: set[str]) -> bool:
        return piece <= _ends(way for way in self.good if piece.issuperset(way))

    def mutual(self) -> Iterator[Fold]:
        """Tell of pairs that fail both ways, joined where several have the same partners."""
        pairs = {way for way in self.left if way[::-1] in self.left}
        while pairs:
            side, partners = _largest(self.order, pairs)
            ways = {way for one in side for other in partners for way in ((one, other), (other, one))}
            pairs -= ways
            yield self.take(Shape.PARTS, (side, partners), ways, self._fewer(side, partners, ways))

    def _fewer(self, side: set[str], partners: set[str], ways: set[Way]) -> set[str]:
        """Return the smaller side, if the larger one is most of all and has no other trouble of its own; else both."""
        small, large = sorted((side, partners), key=len)
        others = _ends(self.left - ways)
        return small if 2 * len(large) > len(self.order) and not large & others else small | large

    def one_way(self) -> Iterator[Fold]:
        """Tell of what is left: ways whose opposite works, or is not known."""
        for shape, fits in ((Shape.ONE_WAY, self._returns), (Shape.FORTH, lambda _: True)):
            ways = {way for way in self.left if fits(way)}
            while ways:
                sources, targets = _largest(self.order, ways)
                taken = {(source, target) for source in sources for target in targets}
                ways -= taken
                yield self.take(shape, (sources, targets), taken, sources | targets)

    def _returns(self, way: Way) -> bool:
        return way[::-1] in self.good


def _partners(ways: Iterable[Way]) -> Partners:
    """Map each name to those from whom a way leads into it, under True; to those to whom one leads, under False."""
    found: dict[bool, dict[str, set[str]]] = {True: {}, False: {}}
    for one, other in ways:
        found[True].setdefault(other, set()).add(one)
        found[False].setdefault(one, set()).add(other)
    return found


def _needed(candidates: dict[tuple[str, bool], set[Way]]) -> dict[tuple[str, bool], set[Way]]:
    """Leave out, one by one, whoever the others explain already; those that explain least go first."""
    explained = Counter(way for ways in candidates.values() for way in ways)
    kept = dict(candidates)
    for key in sorted(candidates, key=lambda key: len(candidates[key])):
        if all(explained[way] > 1 for way in candidates[key]):
            explained.subtract(candidates[key])
            del kept[key]
    return kept


def _pieces(order: tuple[str, ...], broken: set[Way]) -> list[set[str]]:
    """Return the sets of names that hang together by ways that are not broken, in either direction."""
    pieces: list[set[str]] = []
    for name in order:
        joined = [piece for piece in pieces if any({(name, o), (o, name)} - broken for o in piece)]
        pieces = [piece for piece in pieces if piece not in joined]
        pieces.append({name}.union(*joined))
    return pieces


def _largest(order: tuple[str, ...], ways: set[Way]) -> tuple[set[str], set[str]]:
    """Return the sources that share all their targets, and these, or the other way about: what covers most ways."""
    found: list[tuple[set[str], set[str]]] = []
    for near, far in ((0, 1), (1, 0)):
        partners: dict[str, set[str]] = {}
        for way in ways:
            partners.setdefault(way[near], set()).add(way[far])
        alike: dict[frozenset[str], set[str]] = {}
        for name in (name for name in order if name in partners):
            alike.setdefault(frozenset(partners[name]), set()).add(name)
        found += [(names, set(held)) if near == 0 else (set(held), names) for held, names in alike.items()]
    return max(found, key=lambda sides: len(sides[0]) * len(sides[1]))


def _ends(ways: Iterable[Way]) -> set[str]:
    return {name for way in ways for name in way}
