"""What is slower than its own past: the newest run against earlier ones of the same nodes, method, ranks and size.

The median of at least FEWEST runs before is compared with the median of those since, for each run at which it may have
begun; the newest one must be low too, so one bad run among good ones is over with the next good one. How far it must
fall is a multiple of the noise, which is the median distance from the median (MAD), made larger where few runs are
known, and never below NOISE: runs that happen to agree are no proof of little noise. All of it is robust: a run in ten
may be far off. Where a run has many figures, each must fall further, so that the run as a whole is rarely accused.

What changed at the same time is named, as a coincidence. bench/slower.py has how often a step of 10 % is found, and how
often one is seen that is none: see docs/measured.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import NormalDist, median, median_high

from ncheck.history.entry import SETUP, Entry, Figure
from ncheck.history.store import Span
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass

FEWEST, MOST = 8, 30  # runs before the fall; runs that are looked at
LEAST = 0.06  # a smaller fall is never said
NOISE = 0.015  # from run to run, as a share: that of a healthy cluster is 1 to 3 %
RISK = 0.001  # of saying it of a run in which nothing fell
_TIMES = 4.1  # the noise of the two medians
_FEW = 8.0  # the noise of n distances is taken to be larger by this number / n
_OF_NORMAL = 1.4826  # standard deviation / MAD
_OF_MEDIAN = 1.57  # variance of the median of n values, times n
_SMALLER_IS_BETTER = "us"  # a unit
_MOST_CHANGES = 3  # in a sentence


@dataclass(frozen=True)
class Fall:
    """`before`: how many runs there are before it, `usual`: their median; `since`: runs since it began, the newest
    included; `share`: by how much it fell, 0 to 1. `slowly`: it fell bit by bit, and not at once.
    """

    before: int
    usual: float
    since: int
    share: float
    slowly: bool


@dataclass(frozen=True)
class Slower:
    """A figure of the newest run that fell. `began`: the first slow run, in seconds since 1970. `changed`: what was
    another one since then: (what, before, now).
    """

    figure: Figure
    fall: Fall
    began: float
    changed: tuple[tuple[str, str, str], ...] = ()

    @property
    def what(self) -> str:
        """Return what was measured, with the address of a GPU."""
        return " ".join(filter(None, (self.figure.place, self.figure.what)))

    @property
    def how(self) -> str:
        """Return "361 GB/s, 18 % under the median of the 9 runs before"."""
        bit = "bit by bit " if self.fall.slowly else ""
        share = f"{self.fall.share * 100:.0f} %"
        value = f"{self.figure.value:.4g} {self.figure.unit}"
        return f"{value}, {bit}{share} under the median of the {self.fall.before} runs before"

    @property
    def meanwhile(self) -> str:
        """Say what changed at the same time: a coincidence, not a cause. "" where there was no such time."""
        if self.fall.slowly:
            return ""
        shown = [f"{what} went from {before} to {now}" for what, before, now in self.changed[:_MOST_CHANGES]]
        more = len(self.changed) - len(shown)
        shown += [f"{more} more changed"] if more > 0 else []
        return " and ".join(shown) or "nothing that the history keeps changed"


@dataclass(frozen=True)
class NotCompared:
    """Of the figure with the most nodes in the newest run: how many runs of the same kind are before it, fewer than
    FEWEST. `others`: nodes that earlier runs measured instead, folded, empty if none did.
    """

    figure: Figure
    runs: int
    others: tuple[str, ...] = ()


def fall_of(values: Sequence[float], figures: int = 1) -> Fall | None:
    """Return how the newest value fell, if it did. `values`: the oldest first; `figures`: that the run has."""
    window = values[-MOST:]
    if window and window[-1] > max(window) * (1 - LEAST / 2):
        return None  # most figures, at little cost
    stricter = _quantile(RISK / max(figures, 1)) / _quantile(RISK)
    best: tuple[float, Fall] | None = None
    for at in range(FEWEST, len(window)):
        before, after = window[:at], window[at:]
        usual, now = median(before), median_high(after)  # one that is far off is not half of a pair
        share = 1 - now / usual if usual > 0 else 0.0
        if share < LEAST:
            continue
        away = [abs(value / usual - 1) for value in before]
        away += [abs(value - now) / usual for value in after] if len(after) > 2 else []  # noqa: PLR2004
        noise = max(NOISE, _OF_NORMAL * median(away) * (1 + _FEW / len(away)))
        doubt = sqrt(1 / len(after) * (1 if len(after) < 3 else _OF_MEDIAN) + _OF_MEDIAN / at)  # noqa: PLR2004
        needed = max(LEAST, _TIMES * noise * doubt) * stricter
        if share >= needed and window[-1] <= usual * (1 - needed / 2):
            apart = _apart(window, at)
            if best is None or apart < best[0]:
                said = 1 - median(after) / usual
                best = apart, Fall(at, usual, len(after), said, slowly=_slowly(window, apart))
    return best[1] if best else None


def _apart(window: Sequence[float], at: int) -> float:
    """Return how far the values are from a step before this one: the sum of the distances."""
    return sum(abs(value - median(side)) for side in (window[:at], window[at:]) for value in side)


def _quantile(risk: float) -> float:
    return NormalDist().inv_cdf(1 - risk)


def _slowly(window: Sequence[float], step: float) -> bool:
    """Return whether a line through the first and the last third fits clearly better than a step."""
    third = len(window) // 3
    first, last = median(window[:third]), median(window[-third:])
    slope = (last - first) / (len(window) - third)
    line = sum(abs(value - first - slope * (time - (third - 1) / 2)) for time, value in enumerate(window))
    return line < step * _LINE


_LINE = 0.8  # a step is what happens more often


def slower(runs: Sequence[Entry], spans: Sequence[Span]) -> tuple[tuple[Slower, ...], NotCompared | None]:
    """Judge the newest of these runs, the oldest first: what fell, the worst first, and what could not be compared."""
    if not runs or not runs[-1].figures:
        return (), None
    newest = runs[-1]
    series: dict[tuple[object, ...], list[tuple[Entry, Figure]]] = {}
    for run in runs:
        for one in run.figures:
            series.setdefault(_kind(one), []).append((run, one))
    found = []
    for one in newest.figures:
        past = series[_kind(one)]
        fall = fall_of([_speed(figure) for _, figure in past], len(newest.figures))
        if fall:
            last, first = past[-fall.since - 1][0], past[-fall.since][0]
            found.append(Slower(one, fall, first.time, () if fall.slowly else tuple(_changed(last, first, spans))))
    found.sort(key=lambda one: -one.fall.share)
    widest = max((one for one in newest.figures if not one.place), key=lambda one: len(one.nodes), default=None)
    return tuple(found), _not_compared(widest, series) if widest else None


def _kind(one: Figure) -> tuple[object, ...]:
    return frozenset(one.nodes), one.place, one.what, one.unit


def _speed(one: Figure) -> float:
    return (1 / one.value if one.value else 0.0) if one.unit == _SMALLER_IS_BETTER else one.value


def _not_compared(
    one: Figure, series: Mapping[tuple[object, ...], Sequence[tuple[Entry, Figure]]]
) -> NotCompared | None:
    runs = len(series[_kind(one)]) - 1
    others = {
        fold(figure.nodes): None for past in series.values() for _, figure in past
        if _act(figure) == _act(one) and set(figure.nodes) != set(one.nodes)
    }  # fmt: skip
    earlier = any(len({run.time for run, _ in past}) > 1 for past in series.values()) or others
    return NotCompared(one, runs, tuple(others)) if runs < FEWEST and earlier else None


def _act(one: Figure) -> list[str]:
    """Return the stage and the operation: "all all-reduce on 4 nodes, 32 ranks" begins with them."""
    return one.what.split(" ", 2)[:2]


def _changed(before: Entry, after: Entry, spans: Sequence[Span]) -> Iterator[tuple[str, str, str]]:
    """Yield what was one thing in a run and another one in the next of the same nodes: (what, before, now)."""
    nodes = nodes_of(after)
    if nodes != nodes_of(before):
        yield "the nodes of the run", nodes_of(before), nodes
        return
    setups = [span for span in spans if span.kept.kind == SETUP and span.kept.node == nodes]
    read = [{one.kept.detail for one in setups if one.first <= run.time <= one.last} for run in (before, after)]
    places: dict[tuple[str, str], list[Span]] = {}
    for span in setups:
        if all(span.kept.detail in facts for facts in read):  # else it is unknown what it was
            places.setdefault((span.kept.place, span.kept.detail), []).append(span)
    for (place, _), seen in places.items():
        old = [one for one in seen if one.first <= before.time <= one.last]
        new = [one for one in seen if one.first <= after.time <= one.last]
        ended, began = [one for one in old if one.last < after.time], [one for one in new if one.first > before.time]
        if place and (ended or began):  # what seems to last through both came back later, or was there long before
            was, now = ended or old, began or new
            yield place, was[-1].kept.value if was else "none", now[-1].kept.value if now else "none"


def nodes_of(run: Entry) -> str:
    """Return the nodes of a run, as the history keeps what they had."""
    return fold(sorted(name for names in run.nodes.values() for name in names))
