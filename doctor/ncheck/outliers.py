"""Which counters stand out: many ports or GPUs count the same, and one of them has far more than all others.

There is no fixed limit. Ports of a healthy cluster differ much: the rates are taken to vary as a gamma distribution of
shape 1/2, in which one port in a hundred has seven times the mean (our own choice; counts are then negative binomial).
The part that one of n ports has in the sum of all then has the distribution Beta(1/2, (n - 1)/2), whatever the mean is.
A port stands out if a part as large as its own has a chance below 1 in 2,000 to be seen on any of the n ports. A second
port with many errors hides no first one, and where one port in twenty has many, none stands out.

Nodes were not started at the same time. A port has to stand out by its count, since errors at the start say little of a
node that has just started, and by its count per day, since old nodes have counted for longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import exp, inf, lgamma, log
from statistics import median

from ncheck.lazy_dataclass import dataclass
from ncheck.text import span

_SHAPE = 0.5
_CHANCE = 1 / 2000  # that one port of a healthy cluster stands out by one counter
EVENTS, ERRORS = 10, 100  # fewer say nothing: one event, such as a cable that is plugged in, can count many errors
_KNOWN = 10  # that a port would have counted by now, where its zero says something
_SERIES = 4  # of the same kind: fewer cannot be compared
_SHORTEST = 1 / 24  # days
_DAY = 86_400  # seconds

Place = tuple[str, str, str]  # a node, what counts there, and a part of it: "gpu07", "GPU 0", "NVLink 14"


@dataclass(frozen=True)
class Outlier:
    """A count that stands out. `days` since the node was started; `rate` per day; `usual`: the median of the rates of
    the `others`.
    """

    place: Place
    counter: str
    count: int
    days: float
    rate: float
    usual: float
    others: int

    @property
    def name(self) -> str:
        """NVLink 14 of GPU 0"""
        _, name, part = self.place
        return f"{part} of {name}" if part else name

    def line(self, errors: str) -> str:
        """mlx5_3:1 counted 500 link_error_recovery in 12 days (42 per day); the median of 511 others is 0"""
        return (
            f"{self.name} counted {self.count} {errors} in {span(self.days * _DAY)} ({_short(self.rate)} per day); "
            f"the median of {self.others} others is {_short(self.usual)}"
        )


def _short(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.2g}"  # noqa: PLR2004


class Series:
    """What all of one kind have counted since their nodes were started.

    `counters`: those that are compared, and how many each must have counted to stand out.
    """

    def __init__(self, counters: Mapping[str, int]) -> None:
        self._fewest = counters
        self._numbers: dict[str, int] = {}
        self._counts: dict[str, dict[Place, int]] = {}

    def add(self, node: str, name: str, counted: Mapping[str, Mapping[str, int]], number: int = 1) -> None:
        """Add the counters of something on a node, by its parts, of which it has this number.

        `counted` may lack parts and counters that are 0. What has no parts has one, called "".
        """
        self._numbers[name] = self._numbers.get(name, 0) + number
        for part in counted:
            for counter in counted[part]:
                if counter in self._fewest and (count := counted[part][counter]):
                    self._counts.setdefault(counter, {})[node, name, part] = count

    @property
    def comparable(self) -> bool:
        """Whether there are enough of them."""
        return sum(self._numbers.values()) >= _SERIES

    def outliers(self, days: Mapping[str, float]) -> Iterator[Outlier]:
        """Yield what stands out among all, and among those with its name on all nodes, if they are enough.

        `days`: since each node was started.
        """
        times = {node: max(since, _SHORTEST) for node, since in days.items()}
        for counter, counts in self._counts.items() if self.comparable else ():
            many = {place: count for place, count in counts.items() if count >= self._fewest[counter]}
            everywhere = _Sums.of(counts, times, sum(self._numbers.values()))
            for place, count in many.items():
                node, name, _ = place
                if not everywhere.stands_out(count, times[node]):
                    continue
                rate = count / times[node]
                # A node says less if even this one would have counted few since that node was started.
                known = sum(min(1.0, rate * since / _KNOWN) for since in times.values()) / len(times)
                same = {other: number for other, number in counts.items() if other[1] == name}
                groups = [everywhere, _Sums.of(same, times, self._numbers[name])]
                if all(one.stands_out(count, times[node], known) for one in groups if one.series >= _SERIES):
                    rates = [number / times[other[0]] for other, number in counts.items() if other != place]
                    silent = min(everywhere.series - 1 - len(rates), len(rates) + 1)  # more would change nothing
                    usual = median([0.0] * silent + rates)
                    yield Outlier(place, counter, count, days[node], rate, usual, everywhere.series - 1)


@dataclass(frozen=True)
class _Sums:
    """What some of a kind counted together: `count`, `rate` per day, and how many there are."""

    count: int
    rate: float
    series: int

    @classmethod
    def of(cls, counts: Mapping[Place, int], times: Mapping[str, float], series: int) -> _Sums:
        return cls(sum(counts.values()), sum(count / times[place[0]] for place, count in counts.items()), series)

    def stands_out(self, count: int, days: float, known: float = 1.0) -> bool:
        """`known`: as what part of them the others count, 0 to 1."""
        total = max(self.count, self.rate * days) + 1
        series = self.series * known
        return series > 1 and total < inf and self.series * _tail(count, total, series) < _CHANCE


def _tail(count: int, total: float, series: float) -> float:
    """Return an upper bound for the chance that one of so many has as much of the sum as this count is, or more.

    x ** (a - 1) falls for a below 1, so the integral of the density of Beta(a, b) from x is at most
    x ** (a - 1) * (1 - x) ** b / (b * B(a, b)).
    """
    part, others = count / total, max(total - count, 1) / total
    rest = _SHAPE * (series - 1)
    scale = lgamma(_SHAPE + rest) - lgamma(_SHAPE) - lgamma(rest) - log(rest)
    return exp((_SHAPE - 1) * log(part) + rest * log(others) + scale)
