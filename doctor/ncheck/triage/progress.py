"""Whether a job gets on, from cheap looks at it: it is compared with itself, over windows of the same length.

What was seen here is no diagnosis. A job that moves far less than it is used to may evaluate, save or compile; it is a
reason to examine it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from itertools import pairwise
from statistics import median_low, quantiles

from ncheck.lazy_dataclass import dataclass
from ncheck.triage.facts.pulse import PulseFacts

STILL, SLOW = 0.1, 0.6  # shares of what the job usually moves in a window: below them it stands still, or is slow
_WINDOWS = 24  # that are remembered
_BEFORE_SLOW = 3  # windows: a job is called slow after it was seen to be faster for so long


class ProgressKind(Enum):
    """What a job moves. The value is the least that counts: bytes per second and node, or percent of a GPU per node."""

    NETWORK = 16e3
    FILES = 4e3  # of the ranks themselves, gloo's sockets among them
    GPUS = 1.0  # the use of their memory: a kernel of NCCL's that waits keeps a GPU busy, and moves none


Rank = tuple[str, int]  # node and pid


@dataclass(frozen=True)
class Slower:
    """The job moves `share` of what it usually moves, since that time of the looks' clock."""

    kind: ProgressKind
    share: float
    since: float


@dataclass(frozen=True)
class Snapshot:
    """Sums over all nodes at one time."""

    at: float
    moved: Mapping[ProgressKind, float]


@dataclass(frozen=True)
class JobProgress:
    """What one job has moved since it was first looked at. `window` is in seconds: how long it may stand still.

    nodes  the last look at each node
    looks  the sums at each look that is remembered
    cpu    the CPU seconds that each rank has used
    marks  those, and when, once in each window
    """

    window: float
    nodes: Mapping[str, PulseFacts] = field(default_factory=dict)
    looks: tuple[Snapshot, ...] = ()
    cpu: Mapping[Rank, float] = field(default_factory=dict)
    marks: tuple[tuple[float, Mapping[Rank, float]], ...] = ()

    def after(self, at: float, pulses: Mapping[str, PulseFacts]) -> JobProgress:
        """Return it with one more look. A node that did not answer has moved nothing that is known."""
        moved = dict(self.looks[-1].moved) if self.looks else dict.fromkeys(ProgressKind, 0.0)
        cpu = dict(self.cpu)
        for node, now in pulses.items():
            before = self.nodes.get(node)
            if before and now.time > before.time:
                for kind, amount in _grown(before, now).items():
                    moved[kind] += amount
                used = {one.pid: one.cpu for one in before.ranks}
                for one in now.ranks:
                    if one.pid in used:
                        cpu[node, one.pid] = cpu.get((node, one.pid), 0.0) + max(0.0, one.cpu - used[one.pid])
        oldest = at - (_WINDOWS + 1) * self.window
        marks = self.marks
        if not marks or at >= marks[-1][0] + self.window:
            marks = (*marks, (at, cpu))[-_WINDOWS:]
        looks = tuple(look for look in (*self.looks, Snapshot(at, moved)) if look.at >= oldest)
        return JobProgress(self.window, {**self.nodes, **pulses}, looks, cpu, marks)

    @property
    def stands_since(self) -> float | None:
        """Since when the job has moved nearly nothing; None where it did within the last window.

        One kind is enough: of what it usually moves. Of a job that is new all must be still.
        """
        if not self.looks or self.looks[-1].at - self.looks[0].at < self.window:
            return None
        usual = {kind: self._usual(kind, 1, 1) for kind in ProgressKind}
        lively = [kind for kind, amount in usual.items() if amount and amount >= self._least(kind)]
        moved = {kind: self._moved(kind, self.looks[-1].at) for kind in ProgressKind}
        if lively:
            still = [kind for kind in lively if moved[kind] < max(self._least(kind), STILL * (usual[kind] or 0.0))]
            return min((self._last(kind, usual[kind] or 0.0) for kind in still), default=None)
        if any(moved[kind] >= self._least(kind) for kind in ProgressKind):
            return None
        return max(self._last(kind, 0.0) for kind in ProgressKind)

    @property
    def slower(self) -> Slower | None:
        """How much less the job has moved in the last two windows than before, where it is much less."""
        for kind in (ProgressKind.GPUS, ProgressKind.NETWORK, ProgressKind.FILES):
            usual = self._usual(kind, 2, _BEFORE_SLOW)
            if usual and usual >= self._least(kind):
                ends = (self.looks[-1].at, self.looks[-1].at - self.window)
                shares = [self._moved(kind, end) / usual for end in ends]
                if max(shares) < SLOW:
                    return Slower(kind, shares[0], self._last(kind, usual, SLOW))
                return None
        return None

    def busier(self) -> dict[Rank, tuple[float, float]]:
        """Return the ranks that use more of a CPU than they did, while most others use no more: before, and now."""
        if len(self.marks) < 4:  # noqa: PLR2004  two before it became slow, and two after
            return {}
        first, middle, last = self.marks[0], self.marks[-3], self.marks[-1]
        shares = {
            rank: (_rate(rank, first, middle), _rate(rank, middle, last)) for rank in last[1] if rank in middle[1]
        }
        changes = {rank: now - before for rank, (before, now) in shares.items()}
        if not changes or median_low(changes.values()) > _NOTICED / 2:
            return {}
        return {rank: shares[rank] for rank, change in changes.items() if change >= _NOTICED}

    def _least(self, kind: ProgressKind) -> float:
        return float(kind.value) * self.window * max(1, len(self.nodes))

    def _usual(self, kind: ProgressKind, latest: int, least: int) -> float | None:
        """Return what a window usually moved, of those before the `latest` ones; None if they are fewer than `least`.

        Of four windows three moved no more: what a job does while it evaluates is not what it usually does.
        """
        ends = (self.looks[-1].at - number * self.window for number in range(latest, _WINDOWS))
        past = [self._moved(kind, end) for end in ends if end - self.window >= self.looks[0].at]
        if len(past) < least:
            return None
        return past[0] if len(past) == 1 else quantiles(past, n=4, method="inclusive")[2]

    def _moved(self, kind: ProgressKind, end: float) -> float:
        """Return what was moved in the window that ends there."""
        return self._sum_at(kind, end) - self._sum_at(kind, end - self.window)

    def _sum_at(self, kind: ProgressKind, at: float) -> float:
        """Return the sum at a time between two looks."""
        later = next((look for look in self.looks if look.at >= at), self.looks[-1])
        earlier = next((look for look in reversed(self.looks) if look.at <= at), self.looks[0])
        seconds = later.at - earlier.at
        share = (at - earlier.at) / seconds if seconds > 0 else 0.0
        return earlier.moved[kind] + share * (later.moved[kind] - earlier.moved[kind])

    def _last(self, kind: ProgressKind, usual: float, share: float = STILL) -> float:
        """Return when the job was last seen to move at least this share of what it usually moves."""
        least = max(float(kind.value) * max(1, len(self.nodes)), share * usual / self.window)
        for before, now in pairwise(reversed(self.looks)):
            if before.moved[kind] - now.moved[kind] >= least * (before.at - now.at):
                return before.at
        return self.looks[0].at


_NOTICED = 0.2  # of a CPU


def _rate(rank: Rank, before: tuple[float, Mapping[Rank, float]], now: tuple[float, Mapping[Rank, float]]) -> float:
    return (now[1][rank] - before[1].get(rank, 0.0)) / max(0.1, now[0] - before[0])


def _grown(before: PulseFacts, now: PulseFacts) -> dict[ProgressKind, float]:
    """Return what a node moved between two looks. A counter that was set back has moved nothing."""
    own = {one.pid: one.moved for one in before.ranks}
    files = sum(max(0, (one.moved or 0) - (own[one.pid] or 0)) for one in now.ranks if own.get(one.pid) is not None)
    network = max(0, now.network - before.network) + max(0, now.ports - before.ports)
    use = now.gpus.memory_use if now.gpus else 0
    return {ProgressKind.NETWORK: network, ProgressKind.FILES: files, ProgressKind.GPUS: use * (now.time - before.time)}
