"""The pairs as a picture of node by node: which stand in it, under which names, and who is odd."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_high

from doctor.model.report import LOW, Measurement, Pair, Probe
from doctor.report.measured_words import percent, rate

MOST = 16  # nodes that a matrix has room for
LONGEST_LABEL = 4


@dataclass(frozen=True)
class Heat:
    """A matrix of these nodes. `labels` are what parts their names; `shares` are of what is usual, None for a failure.

    `usual` is in GB/s: what was expected of a pair, or else what nodes reach at their best. `odd` are the pairs
    below it, the worst first; `left_out` counts the pairs that stand in no cell, all of them well.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    cells: Mapping[tuple[str, str], Pair]
    usual: float
    expected: bool
    odd: tuple[Pair, ...]
    left_out: int

    def share(self, pair: Pair) -> float | None:
        """Return the pair's bandwidth over what is usual; None where it failed."""
        return None if pair.busbw is None else pair.busbw / self.usual


def heat(probe: Probe, measurements: Sequence[Measurement], most: int = MOST) -> Heat | None:
    """Return the picture; None where there is none to draw: fewer than two pairs, or none that gave anything."""
    there = [pair.busbw for pair in probe.pairs if pair.busbw]
    if len(probe.pairs) < 2 or not there:  # noqa: PLR2004  one pair is no picture
        return None
    should = {one.expected for one in measurements if one.stage == "pair" and one.measured is not None}
    expected = min((value for value in should if value), default=None) if None not in should else None
    usual = expected or _usual(probe.pairs)
    odd = sorted((p for p in probe.pairs if (p.busbw or 0.0) < LOW * usual), key=lambda pair: pair.busbw or 0.0)
    names = _shown(probe.pairs, odd, most)
    shown = [pair for pair in probe.pairs if set(pair.nodes) <= set(names)]
    cells = {order: pair for pair in shown for order in (pair.nodes, pair.nodes[::-1])}
    return Heat(names, labels(names), cells, usual, bool(expected), tuple(odd), len(probe.pairs) - len(shown))


def _usual(pairs: Sequence[Pair]) -> float:
    """Return the middle of what nodes reach at their best: a slow node makes every pair of its own slow."""
    best: dict[str, float] = {}
    for pair in pairs:
        for node in pair.nodes:
            best[node] = max(best.get(node, 0.0), pair.busbw or 0.0)
    return median_high(one for one in best.values() if one)


@dataclass(frozen=True)
class Odd:
    """Pairs that are slow for one reason as far as the picture shows: all of one node's, or one by itself."""

    nodes: tuple[str, ...]
    pairs: tuple[Pair, ...]

    @property
    def best(self) -> float | None:
        """The best of them in GB/s; None where all failed."""
        return max((pair.busbw for pair in self.pairs if pair.busbw is not None), default=None)


def gathered(drawn: Heat, pairs: Sequence[Pair]) -> tuple[Odd, ...]:
    """Return the odd pairs, those of a node together that is odd with everybody it met, the largest group first."""
    well, left, found = _ever_well(drawn, pairs), list(drawn.odd), []
    while left:
        counts = Counter(node for pair in left for node in pair.nodes if node not in well)
        node, number = max(counts.items(), key=lambda one: one[1], default=("", 0))
        if number > 1:
            same = tuple(pair for pair in left if node in pair.nodes)
            found.append(Odd((node,), same))
        else:
            same = (left[0],)
            found.append(Odd(left[0].nodes, same))
        taken = frozenset(same)
        left = [pair for pair in left if pair not in taken]
    return tuple(found)


def odd_words(drawn: Heat, odd: Odd) -> str:
    """Return "gpu03 with each of 3 others: 21.4 GB/s at best, 43 % of that"."""
    who = f"{odd.nodes[0]} with each of {len(odd.pairs)} others" if len(odd.nodes) == 1 else " and ".join(odd.nodes)
    if odd.best is None:
        return f"{who}: failed"
    best = " at best" if len(odd.pairs) > 1 else ""
    return f"{who}: {rate(odd.best)} GB/s{best}, {percent(odd.best / drawn.usual)} of that"


def _ever_well(drawn: Heat, pairs: Sequence[Pair]) -> frozenset[str]:
    """Return the nodes that were not odd with somebody."""
    odd = frozenset(drawn.odd)
    return frozenset(node for pair in pairs if pair not in odd for node in pair.nodes)


def _shown(pairs: Sequence[Pair], odd: Sequence[Pair], most: int) -> tuple[str, ...]:
    """Return all nodes, sorted as people do, or those of the worst pairs where all are too many."""
    every = {node for pair in pairs for node in pair.nodes}
    if len(every) > most:
        every = set(list(dict.fromkeys(node for pair in odd for node in pair.nodes))[:most])
    return tuple(sorted(every, key=_natural))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,9})", name)]


def labels(names: Sequence[str]) -> tuple[str, ...]:
    """Return what is left of the names without what all share ("01" of gpu01), or their numbers where that is long."""
    if len(names) < 2:  # noqa: PLR2004  one name differs from none
        return tuple(f"{place}" for place in range(1, len(names) + 1))
    before = _shared(names).rstrip("0123456789")
    after = _shared([name[len(before) :][::-1] for name in names])[::-1].lstrip("0123456789")
    cut = tuple(name[len(before) : len(name) - len(after)] for name in names)
    if all(0 < len(label) <= LONGEST_LABEL for label in cut):
        return cut
    return tuple(str(place) for place in range(1, len(names) + 1))


def _shared(names: Sequence[str]) -> str:
    """Return the letters that all begin with."""
    first, last = min(names), max(names)
    return first[: next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
