"""Runs of several sizes as a table: throughput, speed-up and efficiency against the smallest size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from ncheck.errors import NcheckError
from ncheck.lazy_dataclass import dataclass
from ncheck.speedup.throughput import Throughput

MINIMUM = 0.8  # the efficiency below which scaling is poor
_IDEAL = 1.1  # an efficiency above it is no good news: caches give a few percent, a wrong assumption gives more


@dataclass(frozen=True)
class JobLog:
    """One log, and the size of the job that wrote it."""

    size: int
    name: str
    throughput: Throughput


@dataclass(frozen=True)
class SpeedupRow:
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
    rows: tuple[SpeedupRow, ...]
    minimum: float
    notes: tuple[str, ...]

    @property
    def poor(self) -> tuple[int, ...]:
        return tuple(row.size for row in self.rows if row.efficiency < self.minimum)

    @property
    def implausible(self) -> tuple[int, ...]:
        """The sizes that are better than ideal: what was assumed of the logs is wrong, or a size is."""
        return tuple(row.size for row in self.rows if row.efficiency > _IDEAL)


def scaling_of(runs: Sequence[JobLog], minimum: float = MINIMUM, *, same_batch: bool = False) -> Scaling:
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
    sizes: dict[str, int] = {}
    for run in runs:
        if sizes.setdefault(run.name, run.size) != run.size:
            raise NcheckError(f"{run.name} is named for size {sizes[run.name]} and for size {run.size}: which is it?")
    counted = all(run.throughput.gpus for run in runs)  # in some logs alone, it would make other sizes of them
    values: dict[int, list[float]] = {}
    for run in sorted(runs, key=lambda run: run.size):
        values.setdefault(run.size, []).append(_total(run, counted=counted, same_batch=same_batch))
    base = min(values)
    rows = []
    for size, same in values.items():
        speedup = median(same) / median(values[base])
        rows.append(SpeedupRow(size, len(same), median(same), speedup, speedup * base / size))
    unit = "batches/s" if first.throughput.unit == "steps/s" and not same_batch else first.throughput.unit
    return Scaling(unit, tuple(rows), minimum, tuple(_notes(runs, counted=counted, same_batch=same_batch)))


def _unit(one: Throughput) -> str:
    return f"{one.unit} per GPU" if one.per_gpu else one.unit


def _total(run: JobLog, *, counted: bool, same_batch: bool) -> float:
    """Return the throughput of the whole job. `counted`: every log says how many GPUs it had."""
    one = run.throughput
    if one.per_gpu:
        return one.value * (one.gpus if counted and one.gpus else run.size)
    if one.unit == "steps/s" and not same_batch:
        return one.value * run.size
    return one.value


def _notes(runs: Sequence[JobLog], *, counted: bool, same_batch: bool) -> Iterator[str]:
    """Yield how each log was read, and what is assumed of all."""
    for run in runs:
        one = run.throughput
        window = (f"mean of {one.steps} steps after the first {one.dropped}" if one.steps
                  else "a value for the whole run or epoch, not for each step")  # fmt: skip
        several = one.ranks > 1 and not one.per_gpu
        ranks = f"; {one.ranks} ranks print it: that of the first is taken as the whole job's" if several else ""
        yield f"{run.name}: {one.kind}, {window}{ranks}"
    one = runs[0].throughput
    if one.unit == "steps/s" and same_batch:
        yield "assumed: all sizes have one global batch"
    elif one.unit == "steps/s":
        yield ("assumed: the batch of each GPU is the same in all sizes, so a step of size N is N batches; "
               "if the global batch is the same: --same-global-batch")  # fmt: skip
    elif one.per_gpu and not counted:
        yield "assumed: the logs say what one GPU does, and the sizes are numbers of GPUs"
