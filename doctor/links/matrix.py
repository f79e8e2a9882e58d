"""Which ways between the addresses of one subnet are broken, good, or not known, by what the nodes tried.

A way is from one place to another, in the direction of the packets that do not get through. A place is a node, or one
address of it where it has several in the subnet. Nothing is concluded from a node whose own links could not be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from doctor.links.folding import Way
from doctor.model.facts import Link, LinkCause, LinkFacts

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
