"""Which node is slow, which link, and who is cleared: by who met whom. The rounds and the checks both ask here.

A pair is as fast as the slowest of its two ends and the way between them, so one fast meeting proves both of its ends,
and a slow one accuses three. Who is never fast is to blame once two partners say so that are fast with others; a pair
that is slow although both of its ends are fast with others has a slow way between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import mean, median

from ncheck.facts.probe import Means, Stage, Step
from ncheck.probe.accounts import account
from ncheck.probe.collectives import Collective

# The bus bandwidth in GB/s that a pair should reach, None where nobody can tell.
Expect = Callable[[Collective], float | None]


Fair = Mapping[Step, float | None]


# Two nodes, and the mean of what they reached together.
Reached = Mapping[frozenset[str], float]


@dataclass(frozen=True)
class Bounds:
    """Shares of what is usual: below `slow` a pair accuses, from `fast` on it clears; between them it says nothing.

    From `near` on up to `fast`, noise alone may have carried it over a bound. A node that was never fast is to blame
    when so many `witnesses` that are fast with others were slow with it. What is usual is what one node of `one_in`
    reaches at its best.
    """

    near: float
    slow: float
    fast: float
    witnesses: int
    one_in: int


# Pairs of healthy nodes lie within about 5 % of one another.
BOUNDS = Bounds(near=0.65, slow=0.8, fast=0.87, witnesses=1, one_in=8)


# Over sockets, where what is right is not known, a machine that does something else besides halves them with ease, and
# two that are guests of one machine are far faster than the rest.
OVER_SOCKETS_BOUNDS = Bounds(near=0.4, slow=0.5, fast=0.6, witnesses=2, one_in=2)


# Beyond this share of its expectation nobody believes the expectation any more, and the peers alone say what is usual.
DOUBTED = 1.25


PARTNERS = 2  # so many it takes to suspect a node; the rounds go on until so many fast ones bear witness


SOCKETS = "Socket"  # what NCCL_NET is pinned to where no HCA carries the data


@dataclass(frozen=True)
class Meeting:
    """One pair, once. `busbw` is in GB/s, None where it failed; `usual` what a healthy pair of this kind has here.

    Whether it is slow, fast or near a bound is told of the mean of all the times that these two came through.
    """

    nodes: tuple[str, str]
    round: int
    busbw: float | None
    usual: float | None
    slow: bool  # a failed one, too
    fast: bool
    near: bool = False

    @property
    def share(self) -> float | None:
        """Return the share of what is usual; None where it failed."""
        return self.busbw / self.usual if self.busbw is not None and self.usual else None

    def partner(self, node: str) -> str:
        """Return the other one."""
        return self.nodes[1] if node == self.nodes[0] else self.nodes[0]


@dataclass(frozen=True)
class Suspect:
    """A node that was never fast, with all its meetings; `witnesses` were slow with it and are fast with others."""

    node: str
    meetings: tuple[Meeting, ...]
    witnesses: tuple[str, ...]

    @property
    def partners(self) -> tuple[str, ...]:
        """Return whom it met, each once."""
        return tuple(dict.fromkeys(meeting.partner(self.node) for meeting in self.meetings))

    @property
    def failed(self) -> bool:
        """Tell whether nothing that it took part in came to its end."""
        return all(meeting.busbw is None for meeting in self.meetings)


@dataclass(frozen=True)
class SlowLink:
    """Two nodes that are fast with others and slow with each other, every time that they met."""

    nodes: tuple[str, str]
    meetings: tuple[Meeting, ...]


@dataclass(frozen=True)
class Search:
    """What is known of every node that met another. `unresolved` were never fast, and too few can bear witness.

    `doubted` are links that were slow once and have not been tried again. `expected` tells that the pairs were measured
    against an expectation and not against one another alone.
    """

    slow: tuple[Suspect, ...] = ()
    links: tuple[SlowLink, ...] = ()
    unresolved: tuple[Suspect, ...] = ()
    fast: tuple[str, ...] = ()
    doubted: tuple[SlowLink, ...] = ()
    meetings: tuple[Meeting, ...] = ()
    means: Means = Means.NCCL
    expected: bool = False

    @property
    def together(self) -> bool:
        """Tell whether so many are slow that what they share is likelier to blame than each of them."""
        return len(self.slow) > 1 and len(self.slow) + len(self.unresolved) >= len(self.fast)

    @property
    def near(self) -> bool:
        """Tell whether noise alone may have decided of some pair."""
        return any(meeting.near for meeting in self.meetings)


def nobody_knows(_: Collective) -> float | None:
    """Expect nothing: the peers alone say what is usual."""
    return None


def searched(collectives: Iterable[Collective], expect: Expect = nobody_knows) -> Search:
    """Return what the pairs of one means say, one rank a node; other stages are left out."""
    pairs = tuple(one for one in collectives if one.step.stage is Stage.PAIR and _tells(one))
    means = pairs[0].step.means if pairs else Means.NCCL
    pairs = tuple(one for one in pairs if one.step.means is means)
    fair = {one.step: expect(one) for one in pairs if one.busbw is not None}
    known = bool(fair) and all(fair.values())
    bounds = OVER_SOCKETS_BOUNDS if not known and any(_over_sockets(one.step) for one in pairs) else BOUNDS
    meetings = _meetings(pairs, fair if known else {}, bounds)
    fast = tuple(dict.fromkeys(node for one in meetings if one.fast for node in one.nodes))
    suspects = _suspects(meetings, frozenset(fast))
    slow = tuple(one for one in suspects if len(one.partners) >= PARTNERS and len(one.witnesses) >= bounds.witnesses)
    links = _slow_links(meetings, frozenset(fast), bounds)
    return Search(
        slow=slow,
        links=tuple(link for link in links if len(link.meetings) > 1),
        unresolved=tuple(one for one in suspects if one not in slow),
        fast=fast,
        doubted=tuple(link for link in links if len(link.meetings) == 1),
        meetings=meetings,
        means=means,
        expected=known,
    )


def _over_sockets(step: Step) -> bool:
    return step.means.on_cpus or step.net == SOCKETS


def _tells(pair: Collective) -> bool:
    """Leave out what tells of nobody: both ends are silent, or their time was over while it still went on."""
    if pair.whole or len(pair.step.group) != 2:  # noqa: PLR2004  two make a pair
        return pair.whole
    parts = [account(node, pair.turns[node], failure) for node, failure in pair.failures.items()]
    gone = bool(pair.silent) and bool(parts)
    return gone or any(part.telling or part.stood_still or not part.failure.late for part in parts)


def _meetings(pairs: tuple[Collective, ...], fair: Fair, bounds: Bounds) -> tuple[Meeting, ...]:
    reached = _reached(pairs, fair)
    usual = _usual(reached, bounds, expected=bool(fair))
    return tuple(_meeting(pair, fair.get(pair.step) or 1.0, reached, usual, bounds) for pair in pairs)


def _reached(pairs: tuple[Collective, ...], fair: Fair) -> Reached:
    """Return what pairs reached, as a share of their expectations where these are known, else in GB/s."""
    held: dict[frozenset[str], list[float]] = {}
    for pair in pairs:
        if pair.busbw is not None:
            held.setdefault(frozenset(pair.step.group), []).append(pair.busbw / (fair.get(pair.step) or 1.0))
    return {nodes: mean(times) for nodes, times in held.items()}


def _meeting(pair: Collective, fair: float, reached: Reached, usual: float | None, bounds: Bounds) -> Meeting:
    one, other = pair.step.group
    share = reached[frozenset(pair.step.group)] / usual if pair.busbw is not None and usual else 0.0
    return Meeting(
        (one, other), pair.step.round, pair.busbw, usual and usual * fair,
        slow=share < bounds.slow, fast=share >= bounds.fast, near=bounds.near <= share < bounds.fast,
    )  # fmt: skip


def _usual(reached: Reached, bounds: Bounds, *, expected: bool) -> float | None:
    """Return what is usual: a share of the expectations where these are known, else GB/s; None where all failed.

    It is the median of the pairs that are rather fast than slow beside the best nodes, of which there must be a few: so
    most of the nodes may be slow. Who reaches the expectation is not slow, however much faster others are.
    """
    best: dict[str, float] = {}
    for nodes, share in reached.items():
        best.update({node: max(share, best.get(node, 0.0)) for node in nodes})
    if not best:
        return None
    upper = sorted(best.values(), reverse=True)[(len(best) - 1) // bounds.one_in]
    usual = median(share for share in reached.values() if share >= (bounds.slow + bounds.fast) / 2 * upper)
    if not expected or usual > DOUBTED:
        return usual
    return 1.0 if len(best) == 2 else min(usual, 1.0)  # noqa: PLR2004  two have no peers


def _suspects(meetings: tuple[Meeting, ...], fast: frozenset[str]) -> tuple[Suspect, ...]:
    held: dict[str, list[Meeting]] = {}
    for meeting in meetings:
        for node in meeting.nodes:
            held.setdefault(node, []).append(meeting)
    return tuple(_suspect(node, tuple(own), fast) for node, own in held.items() if node not in fast)


def _suspect(node: str, meetings: tuple[Meeting, ...], fast: frozenset[str]) -> Suspect:
    accusers = dict.fromkeys(meeting.partner(node) for meeting in meetings if meeting.slow)
    return Suspect(node, meetings, tuple(partner for partner in accusers if partner in fast))


def _slow_links(meetings: tuple[Meeting, ...], fast: frozenset[str], bounds: Bounds) -> tuple[SlowLink, ...]:
    """Return the pairs of fast nodes that were slow whenever they met, and not only in the mean."""
    held: dict[frozenset[str], list[Meeting]] = {}
    for meeting in meetings:
        if fast.issuperset(meeting.nodes):
            held.setdefault(frozenset(meeting.nodes), []).append(meeting)
    slow = (own for own in held.values() if all((one.share or 0.0) < bounds.slow for one in own))
    return tuple(SlowLink(own[0].nodes, tuple(own)) for own in slow)
