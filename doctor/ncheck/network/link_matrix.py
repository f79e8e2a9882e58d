"""Which ways between the addresses of one subnet are broken, good, or not known, by what the nodes tried.

A way is from one place to another, in the direction of the packets that do not get through. A place is a node, or one
address of it where it has several in the subnet. Nothing is concluded from a node whose own links could not be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from ncheck.facts.links import Link, LinkCause, LinkFacts

Known = Mapping[str, LinkFacts]


_MOST_SHOWN = 8


CONNECT = frozenset({LinkCause.REFUSED, LinkCause.FILTERED, LinkCause.UNROUTABLE})


LARGE = frozenset({LinkCause.LARGE_LOST, LinkCause.LARGE_LOST_BACK})


CUT = frozenset({LinkCause.CUT, LinkCause.STRANGER})


# What a link that failed so tells of the other causes: it connected; large messages passed in its own direction.
_CONNECTED = LARGE | {LinkCause.CUT}


@dataclass(frozen=True)
class Tried:
    """A link that failed, and the node that tried it."""

    node: str
    link: Link

    def __str__(self) -> str:
        link, port = self.link, f" port {self.link.port}" if self.link.port else ""
        detail = f" ({link.detail})" if link.detail else ""
        return f"{self.node} {link.source} to {link.target} {link.address}{port}: {link.cause.value}{detail}"


def shown(links: Sequence[Tried]) -> tuple[str, ...]:
    """Return links as evidence: each on a line, of many the first few."""
    more = (f"and {len(links) - _MOST_SHOWN} more",) if len(links) > _MOST_SHOWN else ()
    return (*map(str, links[:_MOST_SHOWN]), *more)


@dataclass(frozen=True)
class Matrix:
    """The ways among the members of one subnet, of the members whose links were read, as far as some causes go."""

    known: Known
    subnet: str
    members: Collection[str]
    causes: frozenset[LinkCause]

    @cached_property
    def heard(self) -> dict[str, LinkFacts]:
        """The members whose links were read."""
        return {node: facts for node, facts in self.known.items() if node in self.members}

    @cached_property
    def links(self) -> tuple[Tried, ...]:
        """Every link that failed, or was not tried, between two of them."""
        return tuple(
            Tried(node, link)
            for node, facts in self.heard.items()
            for link in facts.broken
            if link.subnet == self.subnet and not link.port and link.target in self.heard and link.target != node
        )

    @cached_property
    def failed(self) -> tuple[Tried, ...]:
        """Those that failed: one that was not tried stands for all of its node and subnet, and names no address."""
        return tuple(tried for tried in self.links if tried.link.cause is not LinkCause.UNTRIED)

    @cached_property
    def skipped(self) -> dict[str, frozenset[str]]:
        """The nodes that each node did not try here."""
        found: dict[str, set[str]] = {}
        for tried in self.links:
            if tried.link.cause is LinkCause.UNTRIED:
                found.setdefault(tried.node, set()).add(tried.link.target)
        return {node: frozenset(targets) for node, targets in found.items()}

    @cached_property
    def addresses(self) -> dict[str, tuple[str, ...]]:
        """Each node's own addresses in the subnet, as it or the others told of them."""
        found: dict[str, dict[str, None]] = {}
        for node, facts in self.heard.items():
            own = (reach.source for reach in facts.reaches if reach.subnet == self.subnet)
            found[node] = dict.fromkeys(own)
        for tried in self.failed:
            found[tried.node][tried.link.source] = None
            found[tried.link.target][tried.link.address] = None
        return {node: tuple(held) for node, held in found.items() if held}

    @cached_property
    def places(self) -> dict[str, str]:
        """Every place, with its node."""
        return {self.place(node, ip): node for node, held in self.addresses.items() for ip in held}

    def place(self, node: str, ip: str) -> str:
        return node if len(self.addresses.get(node, ())) == 1 else f"{node} ({ip})"

    def way(self, tried: Tried) -> Way:
        """Return the way that a link took, from the place that tried it."""
        link = tried.link
        return self.place(tried.node, link.source), self.place(link.target, link.address)

    @cached_property
    def broken(self) -> dict[Way, tuple[Tried, ...]]:
        """The broken ways, with the links that tell of them."""
        found: dict[Way, tuple[Tried, ...]] = {}
        for tried in self.failed:
            if tried.link.cause in self.causes:
                there = self.way(tried)
                way = there[::-1] if tried.link.cause is LinkCause.LARGE_LOST_BACK else there
                found[way] = (*found.get(way, ()), tried)  # one or two: of each end
        return found

    @cached_property
    def good(self) -> frozenset[Way]:
        """The ways that are known to be free of these causes."""
        whole = {way for node in self.addresses for way, sure in self._unfailed(node) if sure}
        for tried in self.failed:
            cause = tried.link.cause
            if (self.causes == CONNECT and cause in _CONNECTED) or (
                self.causes == LARGE and cause is LinkCause.LARGE_LOST_BACK
            ):
                whole.add(self.way(tried))
        return frozenset(whole - self.broken.keys())

    @cached_property
    def dark(self) -> tuple[Way, ...]:
        """The pairs of nodes, in the direction of the trial, of which something is not known."""
        skipped = [(node, target) for node, targets in self.skipped.items() for target in sorted(targets)]
        unsure = [
            way for node in self.addresses if not self._all_told(node) for way, sure in self._unfailed(node) if not sure
        ]
        return tuple(dict.fromkeys([*skipped, *((self.places[one], self.places[other]) for one, other in unsure)]))

    def _all_told(self, node: str) -> bool:
        """Tell, without looking at every way, whether a node's links are all told of."""
        partners = set(self._partners(node))
        whole = partners <= self.heard[node].tried_to and node not in self.skipped
        failed = self._failed_from
        return whole and all(
            self._reached(node, source) + len(failed.get((node, source), ())) >= len(partners)
            for source in self.addresses[node]
        )

    def _reached(self, node: str, source: str) -> int:
        facts = self.heard[node]
        return sum(one.reached for one in facts.reaches if (one.subnet, one.source) == (self.subnet, source))

    @cached_property
    def _failed_from(self) -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
        """The ends (node, address) that were not reached, by node and own address."""
        found: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for tried in self.failed:
            found.setdefault((tried.node, tried.link.source), set()).add((tried.link.target, tried.link.address))
        return {start: frozenset(ends) for start, ends in found.items()}

    def _unfailed(self, node: str) -> Iterator[tuple[Way, bool]]:
        """Yield every way from a node of which no failure is told, and whether it is sure that it was tried."""
        asked = self.heard[node].tried_to - self.skipped.get(node, frozenset())
        ends = [(other, ip) for other in self._partners(node) for ip in self.addresses[other]]
        for source in self.addresses[node]:
            failed = self._failed_from.get((node, source), frozenset())
            whole = [end for end in ends if end not in failed]
            # Fewer than nodes: some were left out, and it is not known which.
            counted = self._reached(node, source) >= len({other for other, _ in whole if other in asked})
            for end in whole:
                yield (self.place(node, source), self.place(*end)), counted and end[0] in asked

    def _partners(self, node: str) -> Iterator[str]:
        """Yield the nodes that this one is to try here: across routers, those that it shares no subnet with."""
        for other in self.addresses:
            if other != node and (self.subnet or not self._subnets[node] & self._subnets[other]):
                yield other

    @cached_property
    def _subnets(self) -> dict[str, frozenset[str]]:
        """The subnets that each node has tried something in."""
        return {node: subnets_of(facts) - {""} for node, facts in self.heard.items()}


def subnets_of(facts: LinkFacts) -> frozenset[str]:
    """Return the subnets in which a node tried something, or was to; "" is among them where routers were the way."""
    tried, broken = (reach.subnet for reach in facts.reaches), (link.subnet for link in facts.broken)
    return frozenset((*tried, *broken))


def joined(known: Known) -> dict[frozenset[str], bool]:
    """Tell of each pair of nodes for which links are told: True where some subnet joins it both ways, in all respects.

    False where none does and something is known to be broken; a pair of which only too little is known is left out.
    """
    found: dict[frozenset[str], bool] = {}
    for subnet in sorted({subnet for facts in known.values() for subnet in subnets_of(facts)}):
        net = Matrix(known, subnet, known, frozenset(LinkCause))
        broken = {frozenset((tried.node, tried.link.target)) for tried in net.failed}
        good = {(net.places[one], net.places[other]) for one, other in net.good}
        found.update((pair, False) for pair in broken if not found.get(pair))
        found.update((frozenset(way), True) for way in good if way[::-1] in good and frozenset(way) not in broken)
    return found


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
