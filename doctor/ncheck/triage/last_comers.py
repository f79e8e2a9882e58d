"""Who enters a communicator's collectives last in most calls, by how long each rank's kernel ran; without clocks.

All ranks leave a collective at about the same time. Who enters it last therefore runs its kernel for the shortest time,
and the time by which the others run longer is what they waited for it. Each time is a difference of one GPU's own
clock: the clocks of the nodes, which differ, do not matter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median, variance
from typing import TypeVar

from ncheck.lazy_dataclass import dataclass

Who = TypeVar("Who", bound=Hashable)

FEWEST = 128  # calls: a rank that has a slow moment is last in as many as that lasts
LEAST_WAIT, LEAST_SHARE = 20.0, 0.05  # us, and of the call's own time: below, it is how an algorithm ends
_PARTS = 8
_OF_FEW = 0.7  # of two, each is last in half of the calls anyway: one has to be in 85 %, and one of many in half
_DEVIATIONS = 6.0  # once in a billion, if calls are as dependent as they look


@dataclass(frozen=True)
class LastComer:
    """Who was `last` in so many of `calls`. The others `waited` for so many us of a call of `whole` us (medians)."""

    name: str
    calls: int
    last: int
    waited: float
    whole: float


def last_comer(calls: Sequence[Mapping[Who, float]], name: Callable[[Who], str]) -> LastComer | None:
    """Return who is last in most calls, and more often than chance has it; None for nobody.

    `calls` are in their order: each has how long its members' kernels ran, in us. Members with one `name` count as one.
    """
    found = [_last(call, name) for call in calls]
    counts = Counter(who for who, _, _ in found if who)
    if len(calls) < FEWEST or not counts:
        return None
    who, last = counts.most_common(1)[0]
    by_chance = fmean(sum(name(member) == who for member in call) / len(call) for call in calls)
    of_who = [one == who for one, _, _ in found]
    lasts = sum(share > 1 / 2 for share in _parts(of_who)) >= _PARTS - 1  # not for a while only
    most = last / len(calls) > 1 / 2 + _OF_FEW * by_chance
    if not most or not lasts or not _beyond_chance(of_who, by_chance):
        return None
    waits = [(waited, whole) for one, waited, whole in found if one == who]
    return LastComer(who, len(calls), last, median(waited for waited, _ in waits), median(whole for _, whole in waits))


def _last(call: Mapping[Who, float], name: Callable[[Who], str]) -> tuple[str, float, float]:
    """Return who came last, for how long the others waited, and how long they were in the call; "" for nobody."""
    shortest = min(call, key=call.__getitem__)
    who = name(shortest)
    others = [time for member, time in call.items() if name(member) != who]
    if not others:
        return "", 0.0, 0.0
    whole = median(others)
    waited = whole - call[shortest]
    return (who if waited >= max(LEAST_WAIT, LEAST_SHARE * call[shortest]) else ""), waited, whole


def _parts(last: Sequence[bool]) -> list[float]:
    """Return the share of calls in which one is last, of each of eight parts in a row."""
    ends = [at * len(last) // _PARTS for at in range(_PARTS + 1)]
    return [fmean(last[begin:end]) for begin, end in pairwise(ends)]


def _beyond_chance(last: Sequence[bool], by_chance: float) -> bool:
    """Return whether one is last too often for chance. Calls in a row, or in one part, that go alike count as fewer."""
    share = fmean(last)
    spread = share * (1 - share)
    if not 0 < by_chance < 1:
        return False
    alike = fmean((one - share) * (other - share) for one, other in pairwise(last)) / spread if spread else 0.0
    alike = min(max(alike, 0.0), 0.99)
    of_parts = variance(_parts(last)) * len(last) / _PARTS / spread if spread else 1.0
    independent = len(last) / max((1 + alike) / (1 - alike), of_parts, 1.0)
    return share - by_chance >= _DEVIATIONS * math.sqrt(by_chance * (1 - by_chance) / independent)
