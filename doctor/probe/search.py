"""Which node is slow, which link, and who is cleared: by who met whom. The rounds and the checks both ask here.

A pair is as fast as the slowest of its two ends and the way between them, so one fast meeting proves both of its ends,
and a slow one accuses three. Who is never fast is to blame once two partners say so that are fast with others; a pair
that is slow although both of its ends are fast with others has a slow way between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from doctor.model.facts import Means, Stage
from doctor.probe.collectives import Collective

# The bus bandwidth in GB/s that a pair should reach, None where nobody can tell.
Expect = Callable[[Collective], float | None]

# Below this share of what is usual a meeting is slow. Pairs of healthy nodes lie within about 5 % of one another.
SLOW = 0.8
# Over sockets, where what is right is not known, a machine that does something else besides halves them with ease.
SLOW_ON_CPUS = 0.5
# Beyond this share of its expectation nobody believes the expectation any more, and the peers alone say what is usual.
DOUBTED = 1.25
WITNESSES = 2  # partners, fast with others, that it takes to blame a node

ON_CPUS = frozenset({Means.TCP, Means.GLOO})


@dataclass(frozen=True)
class Meeting:
    """One pair, once. `busbw` in GB/s and `share` of what is usual (1.0); both None where it failed."""

    nodes: tuple[str, str]
    round: int
    busbw: float | None
    share: float | None
    slow: bool  # a failed one, too

    def partner(self, node: str) -> str:
        """Return the other one."""
        return self.nodes[1] if node == self.nodes[0] else self.nodes[0]


@dataclass(frozen=True)
class Suspect:
    """A node that was never fast, with all its meetings; `witnesses` are its partners that are fast with others."""

    node: str
    meetings: tuple[Meeting, ...]
    witnesses: tuple[str, ...]

    @property
    def share(self) -> float | None:
        """Return the best share of what is usual that it reached; None where every meeting failed."""
        return max((meeting.share for meeting in self.meetings if meeting.share is not None), default=None)


@dataclass(frozen=True)
class SlowLink:
    """Two nodes that are fast with others and slow with each other, every time that they met."""

    nodes: tuple[str, str]
    meetings: tuple[Meeting, ...]

    @property
    def share(self) -> float | None:
        """Return the best share of what is usual that they reached; None where every meeting failed."""
        return max((meeting.share for meeting in self.meetings if meeting.share is not None), default=None)


@dataclass(frozen=True)
class Search:
    """What is known of every node that met another. `unresolved` were never fast, and too few can bear witness.

    `doubted` are links that were slow once and have not been tried again. `usual` is the bus bandwidth in GB/s of a
    healthy pair here (None where all failed); `expected` tells that it was measured against an expectation.
    """

    slow: tuple[Suspect, ...]
    links: tuple[SlowLink, ...]
    unresolved: tuple[Suspect, ...]
    fast: tuple[str, ...]
    doubted: tuple[SlowLink, ...] = ()
    usual: float | None = None
    expected: bool = False

    @property
    def together(self) -> bool:
        """Tell whether so many are slow that what they share is likelier to blame than each of them."""
        return len(self.slow) > 1 and len(self.slow) >= len(self.fast)


def nobody_knows(_: Collective) -> float | None:
    """Expect nothing: the peers alone say what is usual."""
    return None


def searched(collectives: Iterable[Collective], expect: Expect = nobody_knows) -> Search:
    """Return what the pairs of one means say, one rank a node; other stages are left out."""
    raise NotImplementedError
