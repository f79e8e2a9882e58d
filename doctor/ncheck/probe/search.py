"""Which nodes and which links are slow, from the pairs of nodes that were measured. Used by the rounds and the checks.

A pair is as fast as the slowest of three: its two nodes and the path between them. So a fast pair clears both nodes,
and a slow one makes all three suspect. A node that is never fast is slow, if its partners are fast with other nodes. If
both nodes of a slow pair are fast with others, the path between them is slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from statistics import mean, median

from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.probe.node_result import Method, Stage, Step
from ncheck.probe.results import Collective, failure_report

# The bus bandwidth in GB/s that a pair should reach, None if unknown.
Expect = Callable[[Collective], float | None]

# What each pair that did not fail should reach.
Expectations = Mapping[Step, float]

# Two nodes, and the mean of what they reached together.
Reached = Mapping[frozenset[str], float]


@dataclass(frozen=True)
class Bounds:
    """Shares of the usual bandwidth: below `slow` a pair is slow, from `fast` on it is fast, between them neither.

    From `near` to `fast`, noise alone may have moved a pair across a bound. A node that was never fast is slow if this
    number of `witnesses`, partners that are fast with others, were slow with it. The usual bandwidth is what the best
    `one_in`-th part of the nodes reaches.
    """

    near: float
    slow: float
    fast: float
    witnesses: int
    one_in: int


# Pairs of healthy nodes lie within about 5 % of one another.
BOUNDS = Bounds(near=0.65, slow=0.8, fast=0.87, witnesses=1, one_in=8)

# Over sockets without an expected bandwidth: a busy machine easily halves it, and two virtual machines on one host are
# far faster than the rest.
OVER_SOCKETS_BOUNDS = Bounds(near=0.4, slow=0.5, fast=0.6, witnesses=2, one_in=2)

# If pairs exceed their expectation by this factor, the expectation is wrong, and only the peers show what is usual.
DOUBTED = 1.25
PARTNERS = 2  # partners needed to call a node slow

# A mean is low if it lies so many standard errors below the usual bandwidth: of ten million healthy nodes three do.
CERTAIN = 5.0

# The standard deviation of healthy pairs is estimated from the measurements; a few count as much as this guess.
GUESSED_NOISE, GUESS_WEIGHT = 0.1, 4
_ESTIMATES = 5  # of the usual bandwidth of many nodes
_ALONE = 0.7  # of a single best pair's bandwidth
SOCKETS = "Socket"  # what NCCL_NET is pinned to where no HCA carries the data


@dataclass(frozen=True)
class PairResult:
    """One measurement of one pair. `busbw` is in GB/s, None if it failed; `usual` is what a healthy pair reaches here.

    `slow`, `fast` and `near` refer to the mean of all successful measurements of this pair.
    """

    nodes: tuple[str, str]
    round: int
    busbw: float | None
    usual: float | None
    slow: bool  # also if it failed
    fast: bool
    near: bool = False

    @property
    def share(self) -> float | None:
        """Its share of the usual bandwidth; None if it failed."""
        return self.busbw / self.usual if self.busbw is not None and self.usual else None

    def partner(self, node: str) -> str:
        """Return the other node."""
        return self.nodes[1] if node == self.nodes[0] else self.nodes[0]


@dataclass(frozen=True)
class Suspect:
    """A node that was never fast, with all its measurements; `witnesses` are partners that are fast with others."""

    node: str
    meetings: tuple[PairResult, ...]
    witnesses: tuple[str, ...]

    @property
    def partners(self) -> tuple[str, ...]:
        """The nodes that it was measured with, each once."""
        return tuple(dict.fromkeys(meeting.partner(self.node) for meeting in self.meetings))

    @property
    def failed(self) -> bool:
        """Whether all its measurements failed."""
        return all(meeting.busbw is None for meeting in self.meetings)


@dataclass(frozen=True)
class SlowLink:
    """Two nodes that are fast with others and slow with each other, in every measurement."""

    nodes: tuple[str, str]
    meetings: tuple[PairResult, ...]


@dataclass(frozen=True)
class SlowSearch:
    """What is known about every node in a pair. `unresolved` nodes were never fast, but are not surely slow. `accused`
    were slow over CPUs and have to be measured once more: a busy machine may have been the reason.

    `doubted` links are slow in the mean so far, but noise may be the reason; `uncleared` are ends of such links that
    may be slow themselves. `expected`: the pairs were compared with an expectation, and not only with each other;
    `usual` is what healthy ones reach, as a share of it, in GB/s without one, None if all failed.
    """

    slow: tuple[Suspect, ...] = ()
    links: tuple[SlowLink, ...] = ()
    unresolved: tuple[Suspect, ...] = ()
    accused: tuple[Suspect, ...] = ()
    fast: tuple[str, ...] = ()
    doubted: tuple[SlowLink, ...] = ()
    uncleared: tuple[str, ...] = ()
    meetings: tuple[PairResult, ...] = ()
    method: Method = Method.NCCL
    op: Op = Op.ALL_REDUCE
    expected: bool = False
    usual: float | None = None

    @property
    def together(self) -> bool:
        """Whether so many nodes are slow that something they share is the likely cause."""
        return len(self.slow) > 1 and len(self.slow) + len(self.unresolved) >= len(self.fast)

    @property
    def near(self) -> bool:
        """Whether noise alone may have decided about some pair."""
        return any(meeting.near for meeting in self.meetings)


def no_expectation(_: Collective) -> float | None:
    """Expect nothing: only the peers show what is usual."""
    return None


def searched(collectives: Iterable[Collective], expect: Expect = no_expectation) -> SlowSearch:
    """Return what the pairs of one method and operation show, one rank per node; other stages are ignored."""
    pairs = tuple(pair for pair in collectives if pair.step.stage is Stage.PAIR and _counts(pair))
    method, op = (pairs[0].step.method, pairs[0].step.op) if pairs else (Method.NCCL, Op.ALL_REDUCE)
    pairs = tuple(pair for pair in pairs if pair.step.method is method and pair.step.op is op)
    expectations = {pair.step: expect(pair) for pair in pairs if pair.busbw is not None}
    known = bool(expectations) and all(expectations.values())
    bounds = OVER_SOCKETS_BOUNDS if not known and any(over_sockets(pair.step) for pair in pairs) else BOUNDS
    should = {step: own or 1.0 for step, own in expectations.items()} if known else _by_size(pairs, bounds)
    reached = _reached((pair.step, pair.busbw / should.get(pair.step, 1.0)) for pair in pairs if pair.busbw is not None)
    usual = _usual(reached, bounds, expected=known)
    meetings = tuple(_meeting(pair, should.get(pair.step, 1.0), reached, usual, bounds) for pair in pairs)
    fast = tuple(dict.fromkeys(node for meeting in meetings if meeting.fast for node in meeting.nodes))
    suspects = _suspects(meetings, frozenset(fast))
    noise = _Noise.of(meetings, bounds)
    low = tuple(suspect for suspect in suspects if _is_slow(suspect, noise, frozenset(fast), bounds))
    accused = tuple(suspect for suspect in low if method.on_cpus and not _measured_again(suspect, frozenset(fast)))
    links = _low_links(meetings, frozenset(fast), bounds)
    uncleared = {link: noise.uncleared(link, meetings, bounds) for link in links}
    repeated = [link for link in links if len(link.meetings) > 1]
    certain = tuple(link for link in repeated if noise.low(link.meetings, bounds) and not uncleared[link])
    return SlowSearch(
        slow=tuple(suspect for suspect in low if suspect not in accused),
        links=certain,
        unresolved=tuple(suspect for suspect in suspects if suspect not in low),
        accused=accused,
        fast=fast,
        doubted=tuple(link for link in links if link not in certain),
        uncleared=tuple(node for link in repeated for node in uncleared[link]),
        meetings=meetings,
        method=method,
        op=op,
        expected=known,
        usual=usual,
    )


def over_sockets(step: Step) -> bool:
    return step.method.on_cpus or step.net == SOCKETS


def _counts(pair: Collective) -> bool:
    """Return whether a pair shows anything: not if both nodes are silent, or if they only ran out of time."""
    if pair.whole or len(pair.step.group) != 2:  # noqa: PLR2004  two make a pair
        return pair.whole
    reports = [failure_report(node, pair.results[node], failure) for node, failure in pair.failures.items()]
    gone = bool(pair.silent) and bool(reports)
    return gone or any(report.names_cause or report.hung or not report.failure.late for report in reports)


def _by_size(pairs: tuple[Collective, ...], bounds: Bounds) -> Expectations:
    """Return the share of the largest size's bandwidth that is usual at each pair's own: not all had time for more."""
    sizes = {pair.step: pair.largest.size for pair in pairs if pair.busbw is not None and pair.largest}
    if len({*sizes.values()}) < 2:  # noqa: PLR2004  two that differ
        return {}
    at: dict[int, float] = {}
    for size in {*sizes.values()}:
        reached = _reached((pair.step, busbw) for pair in pairs if (busbw := pair.busbw_at(size)) is not None)
        at[size] = _usual(reached, bounds, expected=False) or 1.0
    return {step: at[size] / at[max(at)] for step, size in sizes.items()}


def _reached(measured: Iterable[tuple[Step, float]]) -> Reached:
    """Return the mean of each pair, of shares or of GB/s."""
    by_pair: dict[frozenset[str], list[float]] = {}
    for step, value in measured:
        by_pair.setdefault(frozenset(step.group), []).append(value)
    return {nodes: mean(values) for nodes, values in by_pair.items()}


def _meeting(pair: Collective, expected: float, reached: Reached, usual: float | None, bounds: Bounds) -> PairResult:
    first, second = pair.step.group
    share = reached[frozenset(pair.step.group)] / usual if pair.busbw is not None and usual else 0.0
    return PairResult(
        (first, second), pair.step.round, pair.busbw, usual and usual * expected,
        slow=share < bounds.slow, fast=share >= bounds.fast, near=bounds.near <= share < bounds.fast,
    )  # fmt: skip


def _usual(reached: Reached, bounds: Bounds, *, expected: bool) -> float | None:
    """Return what is usual: a share of the expectations if these are known, otherwise GB/s; None if all pairs failed.

    It is the median of the pairs that are close to the best nodes, so that most of the nodes may be slow. A pair that
    reaches its expectation is not slow, however much faster others are.
    """
    best: dict[str, float] = {}
    for nodes, share in reached.items():
        best.update({node: max(share, best.get(node, 0.0)) for node in nodes})
    if not best:
        return None
    usual = sorted(best.values(), reverse=True)[(len(best) - 1) // bounds.one_in]
    # The best of many were lucky, too: each time, those that are close to the estimate are taken in. A single pair
    # that no other comes close to was very lucky.
    for _ in range(_ESTIMATES if len(best) > bounds.one_in else 1):
        close = [share for share in reached.values() if share >= (bounds.slow + bounds.fast) / 2 * usual]
        if len(close) == 1 and len(best) > bounds.one_in:
            close = [share for share in reached.values() if share >= _ALONE * usual]
        usual = median(close)
    if not expected or usual > DOUBTED:
        return usual
    return 1.0 if len(best) == 2 else min(usual, 1.0)  # noqa: PLR2004  two have no peers


@dataclass(frozen=True)
class _Noise:
    """The standard deviation of healthy pairs, as a share of the usual bandwidth, from so many of them."""

    deviation: float
    pairs: int

    @classmethod
    def of(cls, meetings: Sequence[PairResult], bounds: Bounds) -> _Noise:
        """Estimate it from the pairs that are not slow."""
        shares = [share for meeting in meetings if (share := meeting.share) is not None and share >= bounds.slow]
        squares = [(share - 1) ** 2 for share in shares if share <= DOUBTED]
        deviation = sqrt((sum(squares) + GUESS_WEIGHT * GUESSED_NOISE**2) / (len(squares) + GUESS_WEIGHT))
        return cls(deviation, len(shares))

    def low(self, meetings: Sequence[PairResult], bounds: Bounds) -> bool:
        """Return whether these measurements are so low that it is not noise: each of them, or else their mean.

        The lowest one has no part in the mean: it raised the suspicion, and may be due to one bad partner.
        """
        shares = sorted(meeting.share or 0.0 for meeting in meetings)
        if not shares or not self.pairs:
            return False
        if shares[-1] < min(bounds.slow, 1 - CERTAIN * self.deviation):
            return True
        if len(shares) == 1:
            return False
        error = self.deviation * sqrt(1 / (len(shares) - 1) + 1 / self.pairs)
        return mean(shares[1:]) < min(bounds.slow, 1 - CERTAIN * error)

    def uncleared(self, link: SlowLink, meetings: Sequence[PairResult], bounds: Bounds) -> tuple[str, ...]:
        """Return the ends of a link that were not clearly faster with others: a slow node may be lucky once.

        Several fast measurements clear an end, or one that no slow node of this speed reaches.
        """
        slow = mean(meeting.share or 0.0 for meeting in link.meetings)
        lucky = slow * (1 + CERTAIN * max(self.deviation, GUESSED_NOISE) * sqrt(1 + 1 / len(link.meetings)))
        others = [meeting for meeting in meetings if set(meeting.nodes) != set(link.nodes)]
        by_node = {node: [meeting.share or 0.0 for meeting in others if node in meeting.nodes] for node in link.nodes}
        return tuple(
            node for node, shares in by_node.items()
            if (sum(share >= bounds.fast for share in shares) < PARTNERS or mean(shares) < bounds.slow)
            and max(shares, default=0.0) < max(bounds.fast, lucky)
        )  # fmt: skip


def _suspects(meetings: tuple[PairResult, ...], fast: frozenset[str]) -> tuple[Suspect, ...]:
    by_node: dict[str, list[PairResult]] = {}
    for meeting in meetings:
        for node in meeting.nodes:
            by_node.setdefault(node, []).append(meeting)
    return tuple(_suspect(node, tuple(measured), fast) for node, measured in by_node.items() if node not in fast)


def _suspect(node: str, meetings: tuple[PairResult, ...], fast: frozenset[str]) -> Suspect:
    accusers = dict.fromkeys(meeting.partner(node) for meeting in meetings if meeting.slow)
    return Suspect(node, meetings, tuple(partner for partner in accusers if partner in fast))


def _is_slow(suspect: Suspect, noise: _Noise, fast: frozenset[str], bounds: Bounds) -> bool:
    """Return whether a node is slow with several partners, by the measurements with those that are fast with others."""
    proofs = [meeting for meeting in suspect.meetings if meeting.partner(suspect.node) in fast]
    enough = len(suspect.partners) >= PARTNERS and len(suspect.witnesses) >= bounds.witnesses
    return enough and noise.low(proofs, bounds)


def _measured_again(suspect: Suspect, fast: frozenset[str]) -> bool:
    """Return whether a node had a measurement more than those that raised the suspicion; one that fails needs none."""
    return suspect.failed or sum(meeting.partner(suspect.node) in fast for meeting in suspect.meetings) > PARTNERS


def _low_links(meetings: tuple[PairResult, ...], fast: frozenset[str], bounds: Bounds) -> tuple[SlowLink, ...]:
    """Return the pairs of fast nodes that are slow in the mean of their measurements, and fast in none."""
    by_pair: dict[frozenset[str], list[PairResult]] = {}
    for meeting in meetings:
        if fast.issuperset(meeting.nodes):
            by_pair.setdefault(frozenset(meeting.nodes), []).append(meeting)
    by_nodes = {nodes: [meeting.share or 0.0 for meeting in measured] for nodes, measured in by_pair.items()}
    low = [nodes for nodes, shares in by_nodes.items() if mean(shares) < bounds.slow and max(shares) < bounds.fast]
    return tuple(SlowLink(by_pair[nodes][0].nodes, tuple(by_pair[nodes])) for nodes in low)
