"""What the probe measured on a node: its result of each step in which it took part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from ncheck.facts.definition import MEASURING, Fact, exempt_unprobed
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.links import ListenFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.of_plan import PLAN_FACTS
from ncheck.facts.tools import ToolFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read


class Method(str, Enum):
    """What carried the data. A run on CPUs is never called NCCL."""

    NCCL = "nccl"  # libnccl, called by ncheck's own rank program
    NCCL_TESTS = "nccl-tests"  # all_reduce_perf
    GLOO = "gloo"  # torch.distributed on CPUs
    TCP = "tcp"  # plain sockets without a library: pairs, both directions at once
    RDMA = "rdma"  # perftest or ibverbs-utils, one pair of HCA ports
    DIAGNOSTICS = "diagnostics"  # NCCL's own, from 2.31 on

    @property
    def statistic(self) -> str:
        """What its time of a size is of the repeats: nccl-tests prints their mean alone."""
        return "mean" if self is Method.NCCL_TESTS else "median"

    @property
    def act(self) -> str:
        """What it runs, as text: plain sockets and RDMA programs do no all-reduce."""
        return {Method.TCP: "TCP", Method.RDMA: "RDMA"}.get(self, "all-reduce")

    @property
    def on_cpus(self) -> bool:
        """Whether it measures no GPU: then the load of the CPUs matters."""
        return self in (Method.GLOO, Method.TCP)

    @property
    def by_nccl(self) -> bool:
        """Whether it measures NCCL's all-reduce between GPUs, whatever starts the ranks."""
        return self in (Method.NCCL, Method.NCCL_TESTS)


class Stage(str, Enum):
    """Where a collective runs, in the order in which they run."""

    INSIDE = "inside"  # the GPUs of one node; all nodes at once
    PAIR = "pair"  # two nodes, one rank each; disjoint pairs at once
    RAIL = "rail"  # two nodes, one pair of HCA ports
    SCALING = "scaling"  # 2, 4, 8 ... nodes, all ranks of each
    ALL = "all"  # every node, all ranks


@dataclass(frozen=True)
class Step:
    """One collective, as every node of the group was asked for it.

    `round` counts from 1; steps of one round run at the same time. `group`: the nodes, in the order of the ranks;
    `ranks`: number of ranks of each node, in that order. `sizes`: bytes per rank. `launcher`: what starts the
    ranks: "agents" or "mpirun". `net`: the value to which NCCL_NET is pinned, "" for none. `expect`: GB/s of bus
    bandwidth that --expect names. `repeats`: how often each size should be timed; None where a recording does not say.
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

    @property
    def world(self) -> int:
        """The number of ranks."""
        return sum(self.ranks)


@dataclass(frozen=True)
class Timing:
    """How one size was timed.

    `warm_ups`: how many all-reduces came first and do not count; `repeats`: how many times were taken; `iterations`:
    how many all-reduces, one after the other, one such time is the mean of.
    """

    warm_ups: int
    repeats: int
    iterations: int = 1


@dataclass(frozen=True)
class Row:
    """One size. `size`: bytes per rank; `seconds`: seconds of one all-reduce, the median of the repeats; `fastest`:
    seconds of the fastest one; `slowest`: seconds of the slowest. `in_place`: the result overwrites the input.
    `wrong`: how many elements are wrong; None: they were not verified. `timing`: None where a recording lacks it.
    """

    size: int
    in_place: bool
    seconds: float
    fastest: float
    slowest: float
    wrong: int | None = None
    timing: Timing | None = None


@dataclass(frozen=True)
class Carried:
    """What one interface or HCA port of the node carried during the step, by the kernel's counters. `sent` and
    `received`: bytes.
    """

    sent: int
    received: int


@dataclass(frozen=True)
class Failure:
    """Why this node did not finish the step.

    `step`: what it was doing ("init", "all-reduce of 8388608 bytes"); `words`: the message; `rank`: that of the
    process; `code`: the result of the library (ncclResult_t), -9 for a signal; `late`: it ran out of time.

    Triage finds the cause from the words and the log.
    """

    step: str
    words: str
    rank: int | None = None
    code: int | None = None
    late: bool = False


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
    failure: Failure | None = None
    start: float | None = None
    left: tuple[str, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Skipped:
    """A step that was planned but not started, and why: what was not measured has not passed."""

    step: Step
    why: str


LEFT_OUT = (
    "it ran with a node that is left out: list the others alone (--good-nodes FILE), and ncheck probe measures them"
)


@dataclass(frozen=True)
class ProbeFacts:
    """All steps in which this node took part, in their order. Absent with the reason if no probe ran.

    `note` says what the method cannot measure, such as GPUs without an NCCL.
    """

    results: tuple[NodeResult, ...]
    skipped: tuple[Skipped, ...] = ()
    note: str = ""

    def after(self, earlier: ProbeFacts) -> ProbeFacts:
        """Return the turns of both: a node's come in several parts."""
        return ProbeFacts(
            (*earlier.results, *self.results), (*earlier.skipped, *self.skipped), self.note or earlier.note
        )

    def among(self, names: frozenset[str]) -> ProbeFacts:
        """Return the steps that these nodes ran by themselves; what all give without the others nobody measured."""
        gone = [result.step for result in self.results if not names.issuperset(result.step.group)]
        lost = (Skipped(step, LEFT_OUT) for step in gone if step.stage is Stage.ALL)
        return ProbeFacts(
            tuple(result for result in self.results if result.step not in gone),
            (*(one for one in self.skipped if names.issuperset(one.step.group)), *lost),
            self.note,
        )


@dataclass(frozen=True)
class MeetingFacts:
    """Where ranks can meet at this node. `ids`: NCCL identifiers, each for one step; `address` and `port`: those of
    a store. `why`: why there is none, "" if there is. `late`: because its time was over, which is no fault.
    """

    ids: tuple[str, ...] = ()
    address: str = ""
    port: int = 0
    version: str = ""
    library: str = ""
    why: str = ""
    late: bool = False


# The commands that help where nothing was measured, by the names that are recorded.
COMMANDS = {
    "probe": "ncheck probe nodes.txt", "force": "ncheck probe nodes.txt --force",
    "without": "ncheck nodes.txt --probe none",
}  # fmt: skip

TASK, MEETING, SWEEP = Answer("turn"), Answer("meeting"), Answer("sweep")


def _probed(evidence: Evidence) -> Read[ProbeFacts]:
    from ncheck.probe.replies import probed

    return probed(evidence)


def _meeting(evidence: Evidence) -> Read[MeetingFacts]:
    from ncheck.probe.replies import meeting

    return meeting(evidence)


# What the choice of a method, its steps and its expectations are made of.
PROBE_NEEDS = (
    *PLAN_FACTS, GpuFacts, TopologyFacts, LoadedNcclFacts, IdentityFacts, ListenFacts, ToolFacts, MeetingFacts,
)  # fmt: skip
FACTS = (
    Fact(ProbeFacts, (TASK,), _probed, MEASURING, needs=PROBE_NEEDS, exempt=exempt_unprobed),
    Fact(MeetingFacts, (MEETING,), _meeting, MEASURING, exempt=exempt_unprobed),
)
