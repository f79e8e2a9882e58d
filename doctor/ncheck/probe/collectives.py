"""What the nodes tell of one step, put together: one collective has one time, however many ranks tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ncheck.facts.probe import Failure, ProbeFacts, Row, Step, Turn

_ALIKE = 2.0  # times, that what nodes tell of one all-reduce may differ


@dataclass(frozen=True)
class Collective:
    """One step as all its nodes told of it. `turns` are by node; `silent` are those of the group that told nothing.

    `rows` are the mean over all ranks, of the sizes that every node has; empty where the step failed.
    """

    step: Step
    turns: Mapping[str, Turn]
    silent: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def failures(self) -> dict[str, Failure]:
        """The nodes whose part failed, by their own words."""
        return {node: turn.failure for node, turn in self.turns.items() if turn.failure}

    @property
    def whole(self) -> bool:
        """Tell whether every node came to the end of it, and there is something to judge."""
        return bool(self.rows) and not self.silent and not self.failures

    @property
    def largest(self) -> Row | None:
        """The row of the largest size, the out-of-place one where both were measured; None where there is none."""
        return max(self.rows, key=lambda row: (row.size, not row.in_place), default=None)

    @property
    def busbw(self) -> float | None:
        """The bus bandwidth of the largest size in GB/s; None where the step failed."""
        return busbw(self.step, self.largest) if self.whole and self.largest else None


def algbw(row: Row) -> float:
    """Return bytes a rank over seconds, in GB/s (1e9)."""
    return row.size / row.seconds / 1e9


def busbw(step: Step, row: Row) -> float:
    """Return what each link carries in GB/s, as nccl-tests defines it for all-reduce: algbw x 2(n-1)/n for n ranks."""
    return algbw(row) * (2 * (step.world - 1) / step.world if step.world > 1 else 1.0)


def turns_by_step(probed: Mapping[str, ProbeFacts]) -> dict[Step, dict[str, Turn]]:
    """Return the turns of every step by node, in the order in which the steps ran."""
    parts: dict[Step, dict[str, Turn]] = {}
    for node, facts in probed.items():
        for turn in facts.turns:
            if node in turn.step.group:
                parts.setdefault(turn.step, {})[node] = turn
    return {step: parts[step] for step in sorted(parts, key=lambda step: (step.round, step.group))}


def collectives(probed: Mapping[str, ProbeFacts]) -> tuple[Collective, ...]:
    """Return every step that the nodes had a part in, in the order in which they ran."""
    return tuple(_collective(step, turns) for step, turns in turns_by_step(probed).items())


def _collective(step: Step, turns: Mapping[str, Turn]) -> Collective:
    silent = tuple(node for node in step.group if node not in turns)
    failed = silent or any(turn.failure for turn in turns.values())
    return Collective(step, turns, silent, () if failed else _means(step, turns))


def _means(step: Step, turns: Mapping[str, Turn]) -> tuple[Row, ...]:
    """Return the rows that all nodes have, each the mean over the ranks; `wrong` is the sum.

    An all-reduce ends at about the same time everywhere: a node that tells of less than half of what the slowest took
    has told something else, and would make the others look fast.
    """
    held = [{(row.size, row.in_place): row for row in turns[node].rows} for node in step.group]
    common = sorted(set.intersection(*(set(rows) for rows in held)))
    return tuple(_mean([rows[key] for rows in held], step.ranks) for key in common)


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
