"""What the nodes measured in each step, put together; what is missing from it; and what a failed node reports.

A collective has one time, however many ranks report it. What was not measured has not passed: where a gap can hide a
fault it makes a check inconclusive, and the report shows it in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Row, Stage, Step, StepFailure
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue
from ncheck.triage.log_clues import clues_in

LARGE = 2**30  # bytes: from here on the start-up hardly shows
MOST_START = 0.5  # of the time of the largest size: beyond it the links hardly show
_ALIKE = 2.0  # the factor by which the nodes' times of one operation may differ


@dataclass(frozen=True)
class Collective:
    """One step, with the results of all its nodes. `silent` are the nodes of the group that were asked in vain.

    `rows` are the means over all ranks, for the sizes that every node has; empty if the step failed.
    """

    step: Step
    results: Mapping[str, NodeResult]
    silent: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def failures(self) -> dict[str, StepFailure]:
        """The failures that nodes reported, by node."""
        return {node: result.failure for node, result in self.results.items() if result.failure}

    @property
    def whole(self) -> bool:
        """Whether every node finished it, and at least one size was measured."""
        return bool(self.rows) and not self.silent and not self.failures

    @property
    def largest(self) -> Row | None:
        """The row of the largest size, out of place if both were measured; None if there is none."""
        return max(self.rows, key=lambda row: (row.size, not row.in_place), default=None)

    @property
    def busbw(self) -> float | None:
        """The bus bandwidth of the largest size in GB/s; None if the step failed."""
        return busbw(self.step, self.largest) if self.whole and self.largest else None

    def busbw_at(self, size: int) -> float | None:
        """Return the bus bandwidth of one size in GB/s; None if it was not measured."""
        row = max((row for row in self.rows if row.size == size), key=lambda row: not row.in_place, default=None)
        return busbw(self.step, row) if self.whole and row else None


def algbw(row: Row) -> float:
    """Return bytes per rank over seconds, in GB/s (1e9)."""
    return row.size / row.seconds / 1e9


def busbw(step: Step, row: Row) -> float:
    """Return the bus bandwidth in GB/s, as nccl-tests defines it for the operation: see Op.bus_factor."""
    return algbw(row) * step.op.bus_factor(step.world)


def spread(step: Step, row: Row) -> float | None:
    """Return the share of the median from the fastest repeat to the slowest; None where nothing says it."""
    if row.timing is None or row.timing.repeats == 1 or step.method.statistic != "median":
        return None
    return (row.slowest - row.fastest) / row.seconds


def start_up(collective: Collective) -> float | None:
    """Return the start-up time in seconds, fitted to the two largest sizes; None if that is not possible.

    For each size the row counts that Collective.largest prefers; those of gloo are all in place.
    """
    by_size = {row.size: row for row in sorted(collective.rows, key=lambda row: not row.in_place)}
    rows = [by_size[size] for size in sorted(by_size)[-2:]]
    if len(rows) < 2 or rows[1].seconds <= rows[0].seconds:  # noqa: PLR2004  it takes two for a slope
        return None
    small, large = rows
    slope = (large.seconds - small.seconds) / (large.size - small.size)
    return max(0.0, large.seconds - slope * large.size)


def limited_by_links(one: Collective) -> bool:
    """Return whether its messages were so large that the links limited them, and not only the start-up."""
    largest, start = one.largest, start_up(one)
    return largest is not None and (
        largest.size >= LARGE or (start is not None and start <= MOST_START * largest.seconds)
    )


def results_by_step(probed: Mapping[str, ProbeFacts]) -> dict[Step, dict[str, NodeResult]]:
    """Return the results of every step by node, in the order in which the steps ran."""
    by_step: dict[Step, dict[str, NodeResult]] = {}
    for node, facts in probed.items():
        for result in facts.results:
            if node in result.step.group:
                by_step.setdefault(result.step, {})[node] = result
    return {step: by_step[step] for step in sorted(by_step, key=lambda step: (step.round, step.group))}


def collectives(probed: Mapping[str, ProbeFacts]) -> tuple[Collective, ...]:
    """Return every step in which the nodes took part, in the order in which they ran; not those of group_tests."""
    return tuple(one for one in _every(probed) if one.step.stage is not Stage.BOUNDARY)


def group_tests(probed: Mapping[str, ProbeFacts]) -> tuple[Collective, ...]:
    """Return the steps that only show where all nodes together are slow: they are no bandwidths of the cluster."""
    return tuple(one for one in _every(probed) if one.step.stage is Stage.BOUNDARY)


def _every(probed: Mapping[str, ProbeFacts]) -> Iterator[Collective]:
    skipped = {(node, one.step) for node, facts in probed.items() for one in facts.skipped}
    return (_collective(step, results, skipped) for step, results in results_by_step(probed).items())


def _collective(step: Step, results: Mapping[str, NodeResult], skipped: Collection[tuple[str, Step]]) -> Collective:
    silent = tuple(node for node in step.group if node not in results and (node, step) not in skipped)
    failed = len(results) < len(step.group) or any(result.failure for result in results.values())
    return Collective(step, results, silent, () if failed else _means(step, results))


def _means(step: Step, results: Mapping[str, NodeResult]) -> tuple[Row, ...]:
    """Return the rows that all nodes have, each the mean over the ranks; `wrong` is the sum.

    An operation ends at about the same time on all nodes. A node that reports less than half of the slowest node's
    time measured something else, and is left out of the mean.
    """
    by_node = [{(row.size, row.in_place): row for row in results[node].rows} for node in step.group]
    common = sorted(set.intersection(*(set(rows) for rows in by_node)))
    return tuple(_mean([rows[key] for rows in by_node], step.ranks) for key in common)


def _mean(rows: list[Row], ranks: tuple[int, ...]) -> Row:
    longest = max(row.seconds for row in rows)
    weights = [(row, count) for row, count in zip(rows, ranks, strict=True) if row.seconds * _ALIKE >= longest]
    seconds = sum(row.seconds * count for row, count in weights) / sum(count for _, count in weights)
    counted = [row.wrong for row in rows if row.wrong is not None]
    return replace(
        rows[0],
        seconds=seconds,
        fastest=min(row.fastest for row, _ in weights),
        slowest=max(row.slowest for row in rows),
        wrong=sum(counted) if len(counted) == len(rows) else None,
    )


def by_op(ran: Iterable[Collective]) -> dict[Op, tuple[Collective, ...]]:
    """Return the steps by their operation, in the order in which the operations were measured."""
    found: dict[Op, list[Collective]] = {}
    for one in ran:
        found.setdefault(one.step.op, []).append(one)
    return {op: tuple(own) for op, own in found.items()}


def named(ops: Iterable[Op]) -> str:
    """Return "all-gather, reduce-scatter and all-to-all"."""
    *others, last = (op.value for op in ops)
    return f"{', '.join(others)} and {last}" if others else last


# What was not measured


# The methods whose results can be verified, and whose ranks agree on what to leave out.
_SUMS = frozenset({Method.NCCL, Method.NCCL_TESTS, Method.GLOO})


def missing_sizes(ran: Sequence[Collective]) -> dict[tuple[Op, Stage], tuple[int, ...]]:
    """Return by operation and stage the sizes that were not measured in some step that otherwise finished."""
    found: dict[tuple[Op, Stage], set[int]] = {}
    for one in ran:
        if one.whole and one.step.method in _SUMS:
            lacking = set(one.step.sizes) - {row.size for row in one.rows}
            found.setdefault((one.step.op, one.step.stage), set()).update(lacking)
    return {place: tuple(sorted(sizes)) for place, sizes in found.items() if sizes}


def unverified(facts: ProbeFacts) -> bool:
    """Return whether a node has results that were not verified."""
    return any(row.wrong is None for result in _sums(facts) for row in result.rows)


def verified(facts: ProbeFacts) -> bool:
    """Return whether a node has results that were verified."""
    return any(row.wrong is not None for result in _sums(facts) for row in result.rows)


def _sums(facts: ProbeFacts) -> Iterator[NodeResult]:
    return (result for result in facts.results if result.step.method in _SUMS)


def gaps(probed: Mapping[str, ProbeFacts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what was lost, and on which nodes: gaps that nobody can have intended."""
    yield from _sizes_that_differ(probed)
    yield from _not_all_together(probed)
    yield from _not_inside(probed)


def _sizes_that_differ(probed: Mapping[str, ProbeFacts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for one in collectives(probed):
        sizes = {node: {(row.size, row.in_place) for row in result.rows} for node, result in one.results.items()}
        every = set().union(*sizes.values())
        if one.whole and one.step.method in _SUMS and (fewer := tuple(node for node in sizes if sizes[node] != every)):
            yield "it reported fewer sizes than the other nodes of the step measured", fewer


def _not_all_together(probed: Mapping[str, ProbeFacts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    stages = {(step.op, step.stage) for facts in probed.values() for step in _steps(facts)}
    ran: dict[Op, set[Stage]] = {}
    for facts in probed.values():
        for result in _sums(facts):
            ran.setdefault(result.step.op, set()).add(result.step.stage)
    for op, own in ran.items():
        started = Stage.SCALING in own or own >= {Stage.INSIDE, Stage.PAIR}
        if started and (op, Stage.ALL) not in stages:
            yield f"there is no result for the {op.value} on all nodes together", tuple(probed)


def _not_inside(probed: Mapping[str, ProbeFacts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    inside: dict[Op, set[str]] = {}
    for node, facts in probed.items():
        for step in _steps(facts):
            if step.stage is Stage.INSIDE:
                inside.setdefault(step.op, set()).add(node)
    for op, own in inside.items():
        lacking = tuple(node for node, facts in probed.items() if node not in own and _has_several_ranks(node, facts))
        if lacking:
            yield f"there is no result for the {op.value} inside the node, as other nodes have", lacking


def _steps(facts: ProbeFacts) -> Iterator[Step]:
    yield from (result.step for result in facts.results)
    yield from (skipped.step for skipped in facts.skipped)


def _has_several_ranks(node: str, facts: ProbeFacts) -> bool:
    """Return whether a node has several ranks in some step; then it can be measured by itself."""
    return any(dict(zip(step.group, step.ranks, strict=True)).get(node, 0) > 1 for step in _steps(facts))


# What a failed node reports


# Seconds in which ranks start and finish their first size on a healthy cluster, plus one second for every 20 ranks.
# On CPUs more, because a busy machine takes long to load a library.
ENOUGH, ENOUGH_ON_CPUS = 15.0, 60.0
_RANKS_A_SECOND = 20
_TIMES = 10  # how often a size ran, where a node does not say how it timed it
_SLOWER = 3.0  # a size that takes up to this factor longer than expected does not count as hung

# How far a rank got, by the name of its step.
_PROGRESS = ("", "start", "libcuda", "libnccl", "librccl", "libamdhip64", "init", "first all-reduce")
_ENDED_BY_OTHERS = frozenset({6, 15})  # SIGABRT and SIGTERM follow the failure of another rank
_BUS_ERROR = 7


@dataclass(frozen=True)
class FailureReport:
    """One node's failure. `clue` is what its message and its log say, None if nothing."""

    node: str
    result: NodeResult
    failure: StepFailure
    clue: Clue | None

    @property
    def names_cause(self) -> bool:
        """Whether it names a cause of its own, and not only the failure of another node."""
        return self.clue is not None and not self.clue.echo

    @property
    def hung(self) -> bool:
        """Whether it had enough time and made no progress. Too little time is nobody's fault."""
        return self.failure.late and _idle(self.result) > 0

    @property
    def progress(self) -> int:
        """How far it got: of ranks that wait for each other, the others wait for the one that got least far."""
        step = self.failure.step
        return _PROGRESS.index(step) if step in _PROGRESS else len(_PROGRESS)


def failure_report(node: str, result: NodeResult, failure: StepFailure) -> FailureReport:
    """Return what a node reports about its failure."""
    found = _clues((failure.words, *result.log))
    best = found[0] if found else None
    if best is None or best.echo:
        best = _from_failure(failure, symptom=best) or best
    return FailureReport(node, result, failure, best)


@lru_cache(maxsize=2**14)  # several checks ask for the same, and a node may report hundreds of lines
def _clues(lines: tuple[str, ...]) -> tuple[Clue, ...]:
    return clues_in(lines)


def _from_failure(failure: StepFailure, symptom: Clue | None) -> Clue | None:
    """Return what the failure shows if the log names no cause: a signal, or a message that triage does not know."""
    signal = -failure.code if failure.code is not None and failure.code < 0 else 0
    if signal and signal not in _ENDED_BY_OTHERS:
        return _signalled(signal, failure.words)
    if symptom or signal or failure.late or not failure.words:
        return None
    return Clue("logs", "", Grade.POSSIBLE, failure.words, meaning=failure.words)


def _signalled(signal: int, words: str) -> Clue:
    killed = f"a rank was killed by signal {signal}"
    if signal == _BUS_ERROR:
        return Clue(
            "logs", "shm_too_small", Grade.LIKELY, words, others=("rank_crashed",), looks=("df -h /dev/shm",),
            meaning=f"{killed} (SIGBUS): it wrote to shared memory that the node does not have",
        )  # fmt: skip
    look = "sudo journalctl -k -g 'oom|segfault|Xid'"
    return Clue("logs", "rank_crashed", Grade.LIKELY, words, meaning=killed, looks=(look,))


def _idle(result: NodeResult) -> float:
    """Return the seconds beyond what it may have needed for its start, its rows and the next size."""
    if result.seconds is None:
        return 0.0
    enough = ENOUGH_ON_CPUS if result.step.method.on_cpus else ENOUGH
    spent = (result.start or 0.0) + sum(_times(row) * row.slowest for row in result.rows)
    return result.seconds - spent - _needed(result) - enough - result.step.world / _RANKS_A_SECOND


def _needed(result: NodeResult) -> float:
    """Return the seconds that the next size may take, estimated from the largest measured one."""
    largest = max(result.rows, key=lambda row: row.size, default=None)
    if largest is None:
        return 0.0
    following = min((size for size in result.step.sizes if size > largest.size), default=largest.size)
    return _SLOWER * _times(largest) * largest.slowest * following / max(1, largest.size)


def _times(row: Row) -> int:
    """Return how often the operation ran with a size."""
    timing = row.timing
    return timing.warm_ups + timing.repeats * timing.iterations if timing else _TIMES
