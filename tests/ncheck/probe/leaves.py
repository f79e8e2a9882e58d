"""A cluster of leaves, of which it is known what is slow: what sets of its nodes would reach, and what is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from ncheck.probe.boundary import Found, as_shares, blocks, find, find_by_pairs
from ncheck.probe.facts import Groups

USUAL = 300.0  # GB/s


@dataclass
class Leaves:
    """So many leaves with so many nodes each. `slow` maps a node to the share of the usual speed that it has, `uplinks`
    a leaf to that of what leaves it, `between` two leaves to that of the way between them.

    `takes`: nodes of a leaf that must send at once before its uplink is slow. `listed`: the inventory's order.
    """

    count: int
    size: int
    slow: Mapping[str, float] = field(default_factory=dict)
    uplinks: Mapping[int, float] = field(default_factory=dict)
    between: Mapping[tuple[int, int], float] = field(default_factory=dict)
    takes: int = 1
    noise: float = 0.1  # standard deviation
    seed: int = 0
    listed: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311  no secret: the same noise for the same seed
        self.names = nodes(self.count * self.size)
        self.leaf = {name: place // self.size for place, name in enumerate(self.names)}
        self.reached: dict[frozenset[str], list[float]] = {}
        self.rounds = self.tests = 0

    @property
    def groups(self) -> Groups:
        """The leaves, as Slurm names them."""
        return {f"leaf{leaf}": self.names[leaf * self.size : (leaf + 1) * self.size] for leaf in range(self.count)}

    def search(self, *, guessed: bool = False, least: int = 2) -> Found:
        """Measure all nodes, and then what the search asks for, to its end. What the links should give is unknown."""
        groups = blocks(self.listed or self.names) if guessed else self.groups
        self.reached[frozenset(self.names)] = [self.measured(self.names)]
        while True:
            shares = as_shares(self.reached, groups, expected=False)
            found = find(groups, shares, guessed=guessed, least=least)
            if not found.wanted:
                return found
            self._measure(found.wanted)

    def search_pairs(self, suspects: Sequence[tuple[str, str]]) -> Found:
        """Measure pairs alone, to the end of the search."""
        while True:
            shares = {pair: [one / USUAL for one in of] for pair, of in self.reached.items()}
            found = find_by_pairs(self.groups, suspects, shares)
            if not found.wanted:
                return found
            assert {len(pair) for pair in found.wanted} == {2}
            self._measure(found.wanted)

    def _measure(self, wanted: Sequence[Sequence[str]]) -> None:
        assert len({name for one in wanted for name in one}) == sum(map(len, wanted)), "sets of a round are disjoint"
        self.rounds, self.tests = self.rounds + 1, self.tests + len(wanted)
        for one in wanted:
            self.reached.setdefault(frozenset(one), []).append(self.measured(one))

    def measured(self, names: Sequence[str]) -> float:
        """Return GB/s: as many as the slowest part lets through."""
        there = Counter(self.leaf[name] for name in names)
        shares = [1.0, *(self.slow[name] for name in names if name in self.slow)]
        if len(there) > 1:
            shares += [share for leaf, share in self.uplinks.items() if there[leaf] >= self.takes]
        shares += [share for pair, share in self.between.items() if min(there[leaf] for leaf in pair) >= self.takes]
        return USUAL * min(shares) * max(self.random.gauss(1.0, self.noise), 0.1)


def nodes(count: int) -> tuple[str, ...]:
    """Return so many names: n0000, n0001 ..."""
    return tuple(f"n{number:04}" for number in range(count))
