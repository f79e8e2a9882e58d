"""One step of the probe, and what one node answered about it.

Step is what was asked; NodeResult what came back. The types of the fields are what decode.py holds an answer to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Annotated, TypeVar

from ncheck.decode import OPTIONAL, Bounded, Count, Device, Maybe, Null, OrEmpty, Text, Within
from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import Op

T = TypeVar("T")

LONGEST_USED = 2048  # characters of a line that names the adapters
MOST_REPEATS = MOST_RANKS = 2**20
_MOST_ROWS, _MOST_DEVICES, _MOST_LINES = 256, 1024, 300
_MOST_BYTES, _LEAST_SECONDS, _MOST_SECONDS = 2**64, 1e-9, 1e6
_ROUNDED = 1.001  # by so much may equal times differ that were means or were rounded


def _last(lines: tuple[T, ...]) -> tuple[T, ...]:
    return lines[-_MOST_LINES:]


def credible(row: Row) -> Row:
    """Raise ValueError for a size or times that cannot be, or that contradict each other."""
    if row.size > _MOST_BYTES or row.fastest < _LEAST_SECONDS or row.slowest > _MOST_SECONDS:
        raise ValueError("a number is out of range")
    if not row.fastest <= row.seconds * _ROUNDED or not row.seconds <= row.slowest * _ROUNDED:
        raise ValueError("its times contradict each other")
    return row


Words = Annotated[str, Text(1000), OPTIONAL, Null("")]
PathText = Annotated[str, Text(4096), OPTIONAL, Null("")]
Version = Annotated[str, Text(100), OPTIONAL, Null("")]
Lines = Annotated[tuple[Annotated[str, Text(500)], ...], _last, OPTIONAL, Null(())]  # an agent cuts its lines at 400
UsedLines = Annotated[tuple[Annotated[str, Text(LONGEST_USED)], ...], _last, OPTIONAL, Null(())]
Limit = Annotated[float, Within(0, _MOST_SECONDS)]  # seconds
Repeats = Annotated[int, Within(1, MOST_REPEATS)]


class Method(str, Enum):
    """What carried the data. A run on CPUs is never called NCCL."""

    NCCL = "nccl"  # libnccl, called by ncheck's own rank program
    NCCL_TESTS = "nccl-tests"  # all_reduce_perf and its like
    GLOO = "gloo"  # torch.distributed on CPUs
    TCP = "tcp"  # plain sockets without a library: pairs, both directions at once
    RDMA = "rdma"  # perftest or ibverbs-utils, one pair of HCA ports
    DIAGNOSTICS = "diagnostics"  # NCCL's own, from 2.31 on
    NICS = "nics"  # NCCL inside one node, over its NICs alone
    LOOPBACK = "loopback"  # perftest, from one HCA port to itself

    @property
    def statistic(self) -> str:
        """What its time of a size is of the repeats: nccl-tests prints their mean alone."""
        return "mean" if self is Method.NCCL_TESTS else "median"

    @property
    def on_cpus(self) -> bool:
        """Whether it measures no GPU: then the load of the CPUs matters."""
        return self in (Method.GLOO, Method.TCP)

    @property
    def by_nccl(self) -> bool:
        """Whether it measures NCCL between GPUs, whatever starts the ranks."""
        return self in (Method.NCCL, Method.NCCL_TESTS)


class Stage(str, Enum):
    """Where a collective runs, in the order in which they run."""

    INSIDE = "inside"  # the GPUs of one node; all nodes at once
    NICS = "nics"  # the same by the NICs of the node alone
    PAIR = "pair"  # two nodes, one rank each; disjoint pairs at once
    RAIL = "rail"  # two nodes, one pair of HCA ports
    SCALING = "scaling"  # 2, 4, 8 ... nodes, all ranks of each
    ALL = "all"  # every node, all ranks
    BOUNDARY = "boundary"  # parts of them, where all together were slow and pairs were not


@dataclass(frozen=True)
class Step:
    """One collective, as every node of the group was asked for it.

    `round` counts from 1; steps of one round run at the same time. `group`: the nodes, in the order of the ranks;
    `ranks`: number of ranks of each node, in that order. `sizes`: bytes per rank. `launcher`: what starts the
    ranks: "agents" or "mpirun". `net`: the value to which NCCL_NET is pinned, "" for none. `expect`: GB/s of bus
    bandwidth that --expect names. `repeats`: how often each size should be timed; None where a recording does not say.
    `op`: the operation. `off`: the variable of NCCL that was 0 in this step alone, "" for none.
    """

    round: int
    stage: Stage
    method: Method
    group: tuple[str, ...]
    ranks: tuple[int, ...]
    sizes: tuple[int, ...]
    launcher: str = "agents"
    net: str = ""
    expect: float | None = None
    repeats: int | None = None
    op: Op = Op.ALL_REDUCE
    off: str = ""

    @property
    def world(self) -> int:
        """The number of ranks."""
        return sum(self.ranks)

    @property
    def act(self) -> str:
        """What runs, as text: plain sockets and RDMA programs run no operation of --op."""
        return {Method.TCP: "TCP", Method.RDMA: "RDMA", Method.LOOPBACK: "RDMA"}.get(self.method, self.op.value)


@dataclass(frozen=True)
class Timing:
    """How one size was timed.

    `warm_ups`: how many all-reduces came first and do not count; `repeats`: how many times were taken; `iterations`:
    how many all-reduces, one after the other, one such time is the mean of.
    """

    warm_ups: Annotated[int, Within(0, MOST_REPEATS)]
    repeats: Repeats
    iterations: Repeats = 1


@dataclass(frozen=True)
class Row:
    """One size. `size`: bytes per rank; `seconds`: seconds of one all-reduce, the median of the repeats; `fastest`:
    seconds of the fastest one; `slowest`: seconds of the slowest. `in_place`: the result overwrites the input.
    `wrong`: how many elements are wrong; None: they were not verified. `timing`: None where a recording lacks it.
    """

    size: Count
    in_place: bool
    seconds: float
    fastest: float
    slowest: float
    wrong: Maybe[Count] = None
    timing: Maybe[Timing] = None


@dataclass(frozen=True)
class Carried:
    """What one interface or HCA port of the node carried during the step, by the kernel's counters. `sent` and
    `received`: bytes.
    """

    sent: Count
    received: Count


@dataclass(frozen=True)
class StepFailure:
    """Why this node did not finish the step.

    `step`: what it was doing ("init", "all-reduce of 8388608 bytes"); `words`: the message; `rank`: that of the
    process; `code`: the result of the library (ncclResult_t), -9 for a signal; `late`: it ran out of time.

    Triage finds the cause from the words and the log.
    """

    step: Words
    words: Words
    rank: Maybe[Annotated[int, Within(0, MOST_RANKS)]] = None
    code: Maybe[Annotated[int, Within(-(2**31), 2**31)]] = None
    late: Annotated[bool, OPTIONAL] = False


@dataclass(frozen=True)
class ProgramOutput:
    """What a program printed and how it ended. `status`: a Status; `seconds`: how long it ran."""

    status: str
    stdout: OrEmpty = ""
    stderr: OrEmpty = ""
    exit_status: Maybe[int] = None
    reason: OrEmpty = ""
    seconds: Maybe[float] = None


@dataclass(frozen=True)
class StepAnswer:
    """What a node answers about one step: see NodeResult. `held`: files in shared memory that its ranks had, with
    their inodes; `output` is that of a program, from which the rows are to be read.
    """

    rows: Annotated[tuple[Annotated[Row, credible], ...], Bounded(_MOST_ROWS)]
    failure: Maybe[StepFailure] = None
    start: Maybe[Limit] = None
    carried: Annotated[Mapping[Device, Carried], Bounded(_MOST_DEVICES), OPTIONAL] = field(default_factory=dict)
    version: Version = ""
    library: PathText = ""
    used: UsedLines = ()
    log: Lines = ()
    left: Lines = ()
    held: Annotated[Mapping[str, object], OPTIONAL] = field(default_factory=dict)
    output: Maybe[ProgramOutput] = None


@dataclass(frozen=True)
class NodeResult:
    """What a node answered about one step.

    `rows`: the means over its own ranks. `planned`: the interfaces ("eth0") and HCA ports ("mlx5_0:1") that the
    plan uses on this node; `carried`: what each device carried. `version` of the library: "2.21.5", torch's for
    gloo; `library`: its path. `used`: NCCL's log lines about the network that it uses; `log`: NCCL's warnings, and
    the last lines before a failure. `start`: seconds from the question to the first collective; `seconds`: seconds
    of its time limit, None if it was not given one. `left`: what had to be ended or removed, or may be left over.
    """

    step: Step
    rows: tuple[Row, ...]
    planned: tuple[str, ...] = ()
    carried: Mapping[str, Carried] = field(default_factory=dict)
    version: str = ""
    library: str = ""
    used: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    failure: StepFailure | None = None
    start: float | None = None
    left: tuple[str, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Skipped:
    """A step that was planned but not started, and why: what was not measured has not passed."""

    step: Step
    why: str
