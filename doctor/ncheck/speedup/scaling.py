"""Runs of several sizes as a table: throughput, speed-up and efficiency against the smallest size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ncheck.errors import NcheckError
from ncheck.speedup.throughput import Throughput

MINIMUM = 0.8  # the efficiency below which scaling is poor


@dataclass(frozen=True)
class Run:
    """One log, and the size of the job that wrote it."""

    size: int
    name: str
    throughput: Throughput


@dataclass(frozen=True)
class Row:
    """One size: the median throughput of its runs, against the smallest size. An `efficiency` of 1 is ideal."""

    size: int
    runs: int
    throughput: float
    speedup: float
    efficiency: float


@dataclass(frozen=True)
class Scaling:
    """The table. `notes` say what the reader must know of how it was made; `poor` are the sizes below the minimum."""

    unit: str
    rows: tuple[Row, ...]
    minimum: float
    notes: tuple[str, ...]

    @property
    def poor(self) -> tuple[int, ...]:
        return tuple(row.size for row in self.rows if row.efficiency < self.minimum)


def scaling_of(runs: Sequence[Run], minimum: float = MINIMUM, *, same_batch: bool = False) -> Scaling:
    """Compare the sizes. `same_batch`: all sizes together had one global batch, where the logs count steps alone.

    Raises NcheckError where logs cannot be compared.
    """
    if len({run.size for run in runs}) < 2:  # noqa: PLR2004  a size has to be compared with another one
        raise NcheckError("speedup: logs of two sizes at least are needed, as in: ncheck speedup 1=one.log 2=two.log")
    first = runs[0]
    for run in runs:
        if (run.throughput.unit, run.throughput.per_gpu) != (first.throughput.unit, first.throughput.per_gpu):
            units = f"{first.name} has {_unit(first.throughput)} and {run.name} has {_unit(run.throughput)}"
            raise NcheckError(f"{units}: they cannot be compared; choose a value that both have with --pattern")
    values: dict[int, list[float]] = {}
    for run in sorted(runs, key=lambda run: run.size):
        values.setdefault(run.size, []).append(_total(run, same_batch=same_batch))
    base = min(values)
    rows = []
    for size, same in values.items():
        speedup = median(same) / median(values[base])
        rows.append(Row(size, len(same), median(same), speedup, speedup * base / size))
    return Scaling(first.throughput.unit, tuple(rows), minimum, tuple(_notes(runs, same_batch=same_batch)))


def _unit(one: Throughput) -> str:
    return f"{one.unit} per GPU" if one.per_gpu else one.unit


def _total(run: Run, *, same_batch: bool) -> float:
    """Return the throughput of the whole job."""
    one = run.throughput
    if one.per_gpu:
        return one.value * (one.gpus or run.size)
    if one.unit == "steps/s" and not same_batch:
        return one.value * run.size
    return one.value


def _notes(runs: Sequence[Run], *, same_batch: bool) -> list[str]:
    notes: Mapping[str, None] = dict.fromkeys(
        f"{run.name}: {run.throughput.kind}, "
        + (f"mean of {run.throughput.steps} steps after the first {run.throughput.dropped}" if run.throughput.steps
           else "a value for the whole run or epoch, not for each step")
        for run in runs
    )  # fmt: skip
    assumed = []
    if any(run.throughput.unit == "steps/s" for run in runs):
        assumed = [
            "the logs count steps, so all sizes are taken to have one global batch" if same_batch
            else "the logs count steps, so every GPU is taken to have the same batch in all sizes "
            "(else: --same-global-batch)"
        ]  # fmt: skip
    elif any(run.throughput.per_gpu and run.throughput.gpus is None for run in runs):
        assumed = ["the logs say what one GPU does: times the size"]
    return [*notes, *assumed]
