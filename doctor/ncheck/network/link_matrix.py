"""Which paths between the addresses of a subnet are broken, good or unknown, from the connections that nodes tried.

A path leads from one endpoint to another, in the direction of the packets that are lost. An endpoint is a node, or one
of its addresses if it has several in the subnet. Nothing is concluded about a node whose own links could not be read.
In a subnet of many nodes each dials only some (network/peers.py): what it was not to dial is neither good nor unknown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import combinations

from ncheck.facts.links import Link, LinkCause, LinkFacts
from ncheck.lazy_dataclass import dataclass

Known = Mapping[str, LinkFacts]
_MOST_SHOWN = 8
_TANGLED = 500  # failing paths between connected endpoints: too many to look for the largest groups
_SEVERAL = 4  # times as many sound nodes: what they have in common is at fault
CONNECT = frozenset({LinkCause.REFUSED, LinkCause.FILTERED, LinkCause.UNROUTABLE})
LARGE = frozenset({LinkCause.LARGE_LOST, LinkCause.LARGE_LOST_BACK})
CUT = frozenset({LinkCause.CUT, LinkCause.STRANGER})

# A link with one of these causes did connect.
_CONNECTED = LARGE | {LinkCause.CUT}


@dataclass(frozen=True)
class Tried:
    """A failed link, and the node that tried it."""

    node: str
    link: Link

    def __str__(self) -> str:
        link, port = self.link, f" port {self.link.port}" if self.link.port else ""
        detail = f" ({link.detail})" if link.detail else ""
        return f"{self.node} {link.source} to {link.target} {link.address}{port}: {link.cause.value}{detail}"


def shown(links: Sequence[Tried]) -> tuple[str, ...]:
    """Return the links as evidence lines, at most the first few."""
    more = (f"and {len(links) - _MOST_SHOWN} more",) if len(links) > _MOST_SHOWN else ()
    return (*map(str, links[:_MOST_SHOWN]), *more)


@dataclass(frozen=True)
class PathMatrix:
    """The paths between those members of a subnet whose links were read, judged by some causes of failure.

    `partly`: endpoints that lose a part of all connections: that a single one there got no answer is chance.
    """

    known: Known
    subnet: str
    members: Collection[str]
    causes: frozenset[LinkCause]
    partly: frozenset[str] = frozenset()

    @cached_property
    def heard(self) -> dict[str, LinkFacts]:
        """The members whose links were read."""
        return {node: facts for node, facts in self.known.items() if node in self.members}

    @cached_property
    def links(self) -> tuple[Tried, ...]:
        """Every link between two of them that failed or was not tried."""
        return tuple(
            Tried(node, link)
            for node, facts in self.heard.items()
            for link in facts.broken
            if link.subnet == self.subnet and not link.port and link.target in self.heard and link.target != node
        )

    @cached_property
    def failed(self) -> tuple[Tried, ...]:
        """The failed links. A link that was not tried names no address; it covers its whole node and subnet."""
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
        """Each node's own addresses in the subnet, from its own links and from those of other nodes."""
        found: dict[str, dict[str, None]] = {}
        for node, facts in self.heard.items():
            own = (reach.source for reach in facts.reaches if reach.subnet == self.subnet)
            found[node] = dict.fromkeys(own)
        for tried in self.failed:
            found[tried.node][tried.link.source] = None
            found[tried.link.target][tried.link.address] = None
        return {node: tuple(ips) for node, ips in found.items() if ips}

    @cached_property
    def endpoints(self) -> dict[str, str]:
        """Every endpoint, with its node."""
        return {name: node for (node, _), name in self._names.items()}

    @cached_property
    def _names(self) -> dict[tuple[str, str], str]:
        """Every endpoint, by its node and address."""
        return {(node, ip): self.endpoint(node, ip) for node, ips in self.addresses.items() for ip in ips}

    def endpoint(self, node: str, ip: str) -> str:
        return node if len(self.addresses.get(node, ())) == 1 else f"{node} ({ip})"

    def path(self, tried: Tried) -> Path:
        """Return the path of a link, from the endpoint that tried it."""
        link = tried.link
        return self.endpoint(tried.node, link.source), self.endpoint(link.target, link.address)

    @cached_property
    def broken(self) -> dict[Path, tuple[Tried, ...]]:
        """The broken paths, with the links that show it."""
        found: dict[Path, tuple[Tried, ...]] = {}
        for tried in self.failed:
            there = self.path(tried)
            by_chance = tried.link.cause is LinkCause.FILTERED and not self.partly.isdisjoint(there)
            if tried.link.cause in self.causes and not by_chance:
                path = there[::-1] if tried.link.cause is LinkCause.LARGE_LOST_BACK else there
                found[path] = (*found.get(path, ()), tried)  # one or two: each end may have tried it
        return found

    @cached_property
    def good(self) -> frozenset[Path]:
        """The paths that are known not to fail by these causes."""
        whole = {path for node in self.addresses for path, sure in self._unfailed(node) if sure}
        for tried in self.failed:
            cause = tried.link.cause
            if (self.causes == CONNECT and cause in _CONNECTED) or (
                self.causes == LARGE and cause is LinkCause.LARGE_LOST_BACK
            ):
                whole.add(self.path(tried))
        return frozenset(whole - self.broken.keys())

    @cached_property
    def dark(self) -> tuple[Path, ...]:
        """The pairs of nodes, the trying one first, between which something is unknown."""
        skipped = [(node, target) for node, targets in self.skipped.items() for target in sorted(targets)]
        unsure = [
            path
            for node in self.addresses
            if not self._fully_reported(node)
            for path, sure in self._unfailed(node)
            if not sure
        ]
        return tuple(
            dict.fromkeys([*skipped, *((self.endpoints[source], self.endpoints[target]) for source, target in unsure)])
        )

    def _fully_reported(self, node: str) -> bool:
        """Tell whether the results of all links of a node are known, without a look at every path."""
        partners = set(self.partners(node))
        whole = partners <= self.heard[node].tried_to and node not in self.skipped
        failed = self._failed_from
        return whole and all(
            self._reached(node, source) + len(failed.get((node, source), ())) >= len(partners)
            for source in self.addresses[node]
        )

    def _reached(self, node: str, source: str) -> int:
        facts = self.heard[node]
        return sum(reach.reached for reach in facts.reaches if (reach.subnet, reach.source) == (self.subnet, source))

    @cached_property
    def _failed_from(self) -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
        """The targets (node, address) that were not reached, by source node and address."""
        found: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for tried in self.failed:
            found.setdefault((tried.node, tried.link.source), set()).add((tried.link.target, tried.link.address))
        return {start: frozenset(ends) for start, ends in found.items()}

    def _unfailed(self, node: str) -> Iterator[tuple[Path, bool]]:
        """Yield every path from a node without a reported failure, and whether it was certainly tried."""
        asked = self.heard[node].tried_to - self.skipped.get(node, frozenset())
        ends = [(other, ip) for other in self.partners(node) for ip in self.addresses[other]]
        names = self._names
        for source in self.addresses[node]:
            start = names[node, source]
            failed = self._failed_from.get((node, source), frozenset())
            whole = [end for end in ends if end not in failed]
            # If fewer were reached, some were not tried, and it is unknown which.
            counted = self._reached(node, source) >= len({other for other, _ in whole if other in asked})
            for end in whole:
                yield (start, names[end]), counted and end[0] in asked

    @cached_property
    def asked(self) -> frozenset[Path] | None:
        """The paths that were to be tried, if these are only some of those between the members; None for all."""
        if all(facts.sample(self.subnet) is None for facts in self.heard.values()):
            return None
        ends = {node: [self.endpoint(node, ip) for ip in ips] for node, ips in self.addresses.items()}
        pairs = ((node, other) for node in ends for other in self.partners(node))
        return frozenset((source, target) for node, other in pairs for source in ends[node] for target in ends[other])

    def partners(self, node: str) -> Collection[str]:
        """Return the nodes that this one must try here: across routers, those with which it shares no subnet."""
        if (sample := self.heard[node].sample(self.subnet)) is not None:
            return [other for other in sorted(sample) if other in self.addresses]
        others = dict.fromkeys(self.addresses)
        others.pop(node, None)
        if self.subnet:
            return others
        return [other for other in others if not self._subnets[node] & self._subnets[other]]

    @cached_property
    def _subnets(self) -> dict[str, frozenset[str]]:
        """The subnets in which each node tried a link."""
        return {node: subnets_of(facts) - {""} for node, facts in self.heard.items()}


def subnets_of(facts: LinkFacts) -> frozenset[str]:
    """Return the subnets in which a node tried a link or should have; "" stands for links across routers."""
    tried, broken = (reach.subnet for reach in facts.reaches), (link.subnet for link in facts.broken)
    return frozenset((*tried, *broken))


def joined(known: Known) -> dict[frozenset[str], bool]:
    """Map pairs of nodes to whether they can communicate.

    True if some subnet connects them in both directions and for every cause; False if none does and something is known
    to be broken. Pairs about which too little is known are left out.
    """
    found: dict[frozenset[str], bool] = {}
    for subnet in sorted({subnet for facts in known.values() for subnet in subnets_of(facts)}):
        net = PathMatrix(known, subnet, known, frozenset(LinkCause))
        broken = {frozenset((tried.node, tried.link.target)) for tried in net.failed}
        good = {(net.endpoints[source], net.endpoints[target]) for source, target in net.good}
        found.update((pair, False) for pair in broken if not found.get(pair))
        found.update((frozenset(path), True) for path in good if path[::-1] in good and frozenset(path) not in broken)
    return found


def pairs_to_try(known: Known) -> Iterator[tuple[str, str]]:
    """Yield every pair of these nodes or, in a network of many, those that were to try each other."""
    if not any(facts.samples for facts in known.values()):
        yield from combinations(known, 2)
        return
    for subnet in sorted({subnet for facts in known.values() for subnet in subnets_of(facts)}):
        net = PathMatrix(known, subnet, known, CONNECT)
        yield from ((node, other) for node in net.addresses for other in net.partners(node))


Path = tuple[str, str]
Partners = Mapping[bool, Mapping[str, set[str]]]


class Shape(str, Enum):
    """The pattern of a set of broken paths. `left` and `right` are the two sides of a Fold."""

    NOBODY = "nobody"  # no path works; left holds all nodes
    CUT_OFF = "cut-off"  # left reaches no node, and no node reaches left
    UNREACHED = "unreached"  # no node reaches left
    MUTE = "mute"  # left reaches no node
    PARTS = "parts"  # left and right cannot reach each other; each may work inside or not
    ONE_WAY = "one-way"  # left does not reach right; right reaches left
    FORTH = "forth"  # left does not reach right; whether right reaches left is unknown


@dataclass(frozen=True)
class Fold:
    """One statement: the paths that it covers and the endpoints that it names. `right` is empty for the first four.

    `blamed`: the endpoints at fault by the evidence; in a tie, both sides.
    """

    shape: Shape
    left: tuple[str, ...]
    right: tuple[str, ...]
    paths: frozenset[Path]
    blamed: tuple[str, ...]


def folded(
    names: Iterable[str], broken: frozenset[Path], good: frozenset[Path], asked: frozenset[Path] | None = None
) -> tuple[Fold, ...]:
    """Return statements that cover every broken path exactly once; endpoints keep their order.

    `asked`: the paths that were to be tried, None for all between the names. A statement about two sides is then about
    the paths between them that were to be tried.
    """
    order = tuple(names)
    if not broken:
        return ()
    every = len(order) * (len(order) - 1) if asked is None else len(asked)
    if len(order) > 2 and not good and len(broken) == every:  # noqa: PLR2004  two nodes are both named
        return (Fold(Shape.NOBODY, order, (), broken, order),)
    return tuple((_Folding(order, broken, good) if asked is None else _Sampled(order, broken, good, asked)).folds())


class _Folding:
    """Covers the broken paths step by step; `left` holds the paths that are not covered yet."""

    def __init__(self, order: tuple[str, ...], broken: frozenset[Path], good: frozenset[Path]) -> None:
        self.order, self.broken, self.good = order, broken, good
        self.places = {name: place for place, name in enumerate(order)}
        self.left = set(broken)
        self.rest = order  # endpoints that are not singled out
        self.working = _partners(good)

    def folds(self) -> Iterator[Fold]:
        yield from self.singled_out()
        yield from self.parts()
        yield from self.mutual()
        yield from self.one_way()

    def take(
        self, shape: Shape, sides: tuple[Iterable[str], Iterable[str]], paths: set[Path], blamed: set[str]
    ) -> Fold:
        self.left -= paths
        left, right = (self.sorted(side) for side in sides)
        return Fold(shape, left, right, frozenset(paths), self.sorted(blamed))

    def sorted(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({name for name in names if name in self.places}, key=self.places.__getitem__))

    def singled_out(self) -> Iterator[Fold]:
        """Yield the endpoints that no other reaches, or that reach no other, while the others can."""
        broken = _partners(self.broken)
        chosen = _needed({**dict(self._all_broken(broken, into=True)), **dict(self._all_broken(broken, into=False))})
        shapes: dict[str, Shape] = {}
        for name, deaf_too in chosen:
            shapes[name] = Shape.CUT_OFF if name in shapes else Shape.UNREACHED if deaf_too else Shape.MUTE
        for name in sorted(self.sorted(shapes), key=lambda name: list(Shape).index(shapes[name])):
            paths = set().union(*(chosen.get((name, into), ()) for into in (True, False))) & self.left
            if paths:
                yield self.take(shapes[name], ((name,), ()), paths, {name})
        self.rest = tuple(name for name in self.order if name not in shapes)

    def _all_broken(self, broken: Partners, *, into: bool) -> Iterator[tuple[tuple[str, bool], set[Path]]]:
        """Yield the endpoints whose known paths in (or out) are all broken, if the far ends are not at fault.

        A single path does not show which end is at fault. Of several far ends, at least one must work with another.
        """
        for name in self.order:
            ends = broken[into].get(name, set())
            if len(ends) > 1 and name not in self.working[into] and not ends.isdisjoint(self.working[not into]):
                yield (name, into), {(end, name) if into else (name, end) for end in ends}

    def parts(self) -> Iterator[Fold]:
        """Yield groups between which no path works: each against the rest, the smallest first."""
        pieces = sorted(self.pieces(), key=len)
        while len(pieces) > 1:
            side, rest = pieces[0], set().union(*pieces[1:])
            paths = {(one, to) for one, to in self.left if (one in side and to in rest) or (one in rest and to in side)}
            odd = len(side) < len(pieces[-1]) and self._is_connected(pieces[-1])
            yield self.take(Shape.PARTS, (side, rest), paths, side if odd else side | rest)
            pieces = pieces[1:]

    def _is_connected(self, piece: set[str]) -> bool:
        return piece <= _ends(path for path in self.good if piece.issuperset(path))

    def mutual(self) -> Iterator[Fold]:
        """Yield pairs that fail in both directions, merged if several have the same partners."""
        for one, other, paths in self.sides({path for path in self.left if path[::-1] in self.left}):
            yield self.take(Shape.PARTS, (one, other), paths, self.fewer(one, other, paths))

    def fewer(self, side: set[str], partners: set[str], paths: set[Path]) -> set[str]:
        """Return the smaller side if the larger one is the majority and has no other fault; otherwise both."""
        small, large = sorted((side, partners), key=len)
        others = _ends(self.left - paths)
        return small if 2 * len(large) > len(self.order) and not large & others else small | large

    def one_way(self) -> Iterator[Fold]:
        """Yield the remaining paths: their opposite direction works or is unknown."""
        for shape, fits in ((Shape.ONE_WAY, self._returns), (Shape.FORTH, lambda _: True)):
            for sources, targets, paths in self.sides({path for path in self.left if fits(path)}):
                yield self.take(shape, (sources, targets), paths, self.fewer_of_one_way(sources, targets, paths))

    def fewer_of_one_way(self, sources: set[str], targets: set[str], paths: set[Path]) -> set[str]:  # noqa: ARG002  _Sampled needs them
        """Return both sides: which of them loses the packets is not seen."""
        return sources | targets

    def _returns(self, path: Path) -> bool:
        return path[::-1] in self.good

    def pieces(self) -> list[set[str]]:
        """Return the groups of endpoints that unbroken paths connect, in either direction."""
        pieces: list[set[str]] = []
        for name in self.rest:
            joined = [piece for piece in pieces if any({(name, o), (o, name)} - self.left for o in piece)]
            pieces = [piece for piece in pieces if piece not in joined]
            pieces.append({name}.union(*joined))
        return pieces

    def sides(self, paths: set[Path]) -> Iterator[Sides]:
        """Yield two groups of endpoints and the paths between them, all of which fail, until each path is in one."""
        while paths:
            one, other = _largest(self.order, paths)
            taken = {path for near in one for far in other for path in ((near, far), (far, near)) if path in paths}
            paths = paths - taken
            yield one, other, taken


class _Sampled(_Folding):
    """The same where only some paths were to be tried, in both directions of each pair: `asked`.

    Two endpoints that were not to try each other belong together if others connect them. Two groups fail if all that
    was tried between them does.
    """

    def __init__(
        self, order: tuple[str, ...], broken: frozenset[Path], good: frozenset[Path], asked: frozenset[Path]
    ) -> None:
        super().__init__(order, broken, good)
        self.partners = _neighbours(asked)
        self.failing = Counter(name for path in broken for name in path)

    def take(
        self, shape: Shape, sides: tuple[Iterable[str], Iterable[str]], paths: set[Path], blamed: set[str]
    ) -> Fold:
        self.failing.subtract(name for path in paths for name in path)
        return super().take(shape, sides, paths, blamed)

    def pieces(self) -> list[set[str]]:
        rest = set(self.rest)
        unbroken = {
            name: [o for o in self.partners.get(name, ()) if o in rest and {(name, o), (o, name)} - self.left]
            for name in self.rest
        }
        return _connected(self.rest, unbroken)

    def sides(self, paths: set[Path]) -> Iterator[Sides]:
        failing = _neighbours(paths)
        for piece in _connected(self.sorted(failing), failing):
            taken = {path for name in piece for o in failing[name] for path in ((name, o), (o, name)) if path in paths}
            one, other = _halves(self.sorted(piece), failing)
            if taken.isdisjoint((source, target) for source in one for target in failing[source]):
                one, other = other, one
            if self._all_fail(one, other, failing) and all(
                source in one or (target, source) in taken for source, target in taken
            ):
                yield one, other, taken
            else:
                yield from super().sides(taken) if len(taken) <= _TANGLED else self._stars(taken)

    def _stars(self, paths: set[Path]) -> Iterator[Sides]:
        """Yield each endpoint with those to which, or from which, its paths fail; the one with the most comes first."""
        left, ends = set(paths), _partners(paths)
        count = Counter(name for path in paths for name in path)
        for name in sorted(count, key=lambda name: (-count[name], self.places[name])):
            for into in (False, True):
                others = ends[into].get(name, set())
                taken = {path for other in others for path in ((name, other), (other, name))} & left
                if taken:
                    far = {end for path in taken for end in path} - {name}
                    yield *((far, {name}) if into else ({name}, far)), taken
                    left -= taken

    def _all_fail(self, one: set[str], other: set[str], failing: Mapping[str, set[str]]) -> bool:
        """Tell whether the failing paths are those that were to be tried between these two groups, and no others."""
        return all(
            failing[name] == self.partners[name] & far for near, far in ((one, other), (other, one)) for name in near
        )

    def fewer(self, side: set[str], partners: set[str], paths: set[Path]) -> set[str]:
        """Return the smaller side if the larger one has no other fault, and is most of what the smaller one tried or
        several times as many; otherwise both.
        """
        small, large = sorted((side, partners), key=len)
        tried = set().union(*(self.partners[name] for name in small)) - small
        own = Counter(name for path in paths for name in path)
        sound = all(self.failing[name] == own[name] for name in large)
        most = len(small) < len(large) and 2 * len(large) > len(tried)
        return small if sound and (most or len(large) >= _SEVERAL * len(small)) else small | large

    def fewer_of_one_way(self, sources: set[str], targets: set[str], paths: set[Path]) -> set[str]:
        return self.fewer(sources, targets, paths)


Sides = tuple[set[str], set[str], set[Path]]


def _neighbours(paths: Iterable[Path]) -> dict[str, set[str]]:
    """Map each endpoint to the others of its paths, in either direction."""
    found: dict[str, set[str]] = {}
    for one, other in paths:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return found


def _connected(order: Iterable[str], neighbours: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Return the groups of endpoints that are neighbours of each other, directly or by others."""
    pieces: list[set[str]] = []
    seen: set[str] = set()
    for name in order:
        if name not in seen:
            piece, waiting = {name}, [name]
            while waiting:
                found = set(neighbours[waiting.pop()]) - piece
                piece |= found
                waiting += found
            pieces.append(piece)
            seen |= piece
    return pieces


def _halves(piece: Sequence[str], neighbours: Mapping[str, set[str]]) -> tuple[set[str], set[str]]:
    """Part connected endpoints in two by how many steps they are from the first; neighbours may be in one half."""
    halves: tuple[set[str], set[str]] = {piece[0]}, set()
    step, seen = 0, {piece[0]}
    edge = seen
    while edge:
        step += 1
        edge = set().union(*(neighbours[name] for name in edge)) - seen
        seen = seen | edge
        halves[step % 2].update(edge)
    return halves


def _partners(paths: Iterable[Path]) -> Partners:
    """Map each endpoint to the sources of paths into it (under True), and to the targets of paths from it (False)."""
    into, out = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for source, target in paths:
        into[target].add(source)
        out[source].add(target)
    return {True: dict(into), False: dict(out)}


def _needed(candidates: dict[tuple[str, bool], set[Path]]) -> dict[tuple[str, bool], set[Path]]:
    """Remove, one by one, candidates whose paths the others explain; those that explain least go first."""
    explained = Counter(path for paths in candidates.values() for path in paths)
    kept = dict(candidates)
    for key in sorted(candidates, key=lambda key: len(candidates[key])):
        if all(explained[path] > 1 for path in candidates[key]):
            explained.subtract(candidates[key])
            del kept[key]
    return kept


def _largest(order: tuple[str, ...], paths: set[Path]) -> tuple[set[str], set[str]]:
    """Return the sources with the same targets, and these targets (or the reverse), that cover the most paths."""
    found: list[tuple[set[str], set[str]]] = []
    for near, far in ((0, 1), (1, 0)):
        partners: dict[str, set[str]] = {}
        for path in paths:
            partners.setdefault(path[near], set()).add(path[far])
        alike: dict[frozenset[str], set[str]] = {}
        for name in (name for name in order if name in partners):
            alike.setdefault(frozenset(partners[name]), set()).add(name)
        found += [(names, set(ends)) if near == 0 else (set(ends), names) for ends, names in alike.items()]
    return max(found, key=lambda sides: len(sides[0]) * len(sides[1]))


def _ends(paths: Iterable[Path]) -> set[str]:
    return {name for path in paths for name in path}
