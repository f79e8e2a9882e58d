"""What the probe measured on a node: its part in each collective that it was asked to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ncheck.facts.definition import MEASURING, Fact, exempt_unprobed
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.links import ListenFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.tools import ToolFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read
from ncheck.plan import PLAN_FACTS


class Means(str, Enum):
    """What carried the data. A run on CPUs never calls itself NCCL."""

    NCCL = "nccl"  # libnccl, driven by ncheck's own rank program
    NCCL_TESTS = "nccl-tests"  # all_reduce_perf
    GLOO = "gloo"  # torch.distributed on CPUs
    TCP = "tcp"  # sockets alone, no library: pairs, both ways at once
    RDMA = "rdma"  # perftest or ibverbs-utils, one pair of HCA ports
    DIAGNOSTICS = "diagnostics"  # NCCL's own, from 2.31 on

    @property
    def act(self) -> str:
        """What is run by it, in words: sockets and HCAs alone do no all-reduce."""
        return {Means.TCP: "TCP", Means.RDMA: "RDMA"}.get(self, "all-reduce")

    @property
    def on_cpus(self) -> bool:
        """Whether it measures no GPU: how busy the CPUs are counts as well."""
        return self in (Means.GLOO, Means.TCP)

    @property
    def by_nccl(self) -> bool:
        """Whether NCCL's all-reduce between GPUs is measured, whoever started the ranks."""
        return self in (Means.NCCL, Means.NCCL_TESTS)


class Stage(str, Enum):
    """Where a collective ran, in the order in which they are run."""

    INSIDE = "inside"  # the GPUs of one node; all nodes at once
    PAIR = "pair"  # two nodes, one rank each; disjoint pairs at once
    RAIL = "rail"  # two nodes, one pair of HCA ports
    SCALING = "scaling"  # 2, 4, 8 ... nodes, all ranks of each
    ALL = "all"  # every node, all ranks


@dataclass(frozen=True)
class Step:
    """One collective, as the head asked for it; every node of the group was asked the same.

    `round` counts from 1: what has one number ran at the same time. `group` is in the order of the ranks, `ranks`
    (ranks a node, in that order). Sizes are bytes a rank. `launcher` is what started the ranks: "agents" or "mpirun".
    `expect` is the bus bandwidth in GB/s that --expect names. `net` is what NCCL_NET was pinned to, "" for nothing.
    """

    round: int
    stage: Stage
    means: Means
    group: tuple[str, ...]
    ranks: tuple[int, ...]
    sizes: tuple[int, ...]
    launcher: str = "agents"
    net: str = ""
    expect: float | None = None

    @property
    def world(self) -> int:
        """The number of ranks."""
        return sum(self.ranks)


@dataclass(frozen=True)
class Row:
    """One size: bytes a rank; seconds of one all-reduce, the median of the repeats, its fastest and slowest repeat.

    `wrong` counts the elements that are not what they should be; None: they were not verified.
    """

    size: int
    in_place: bool
    seconds: float
    fastest: float
    slowest: float
    wrong: int | None = None


@dataclass(frozen=True)
class Carried:
    """Bytes that one interface or HCA port of the node moved while the step ran, by the kernel's own counters."""

    sent: int
    received: int


@dataclass(frozen=True)
class Failure:
    """Why this node's part did not come to its end: where it stood, and whose words those are.

    `step` is what it was doing ("init", "all-reduce of 8388608 bytes"), `code` the library's result (ncclResult_t), -9
    for a signal; `late` tells that its time was over. The cause is found by triage, from `words` and the log.
    """

    step: str
    words: str
    rank: int | None = None
    code: int | None = None
    late: bool = False


@dataclass(frozen=True)
class Turn:
    """This node's part in one step. `rows` are the mean over its own ranks.

    `planned` are the interfaces ("eth0") and HCA ports ("mlx5_0:1") that the plan means for this node, `carried` what
    each moved; `used` are NCCL's own lines of which network it uses, `log` its warnings and the last lines before a
    failure; `start` the seconds from the question to the first collective; `left` what had to be ended or removed,
    or may be left.
    """

    step: Step
    rows: tuple[Row, ...]
    planned: tuple[str, ...] = ()
    carried: Mapping[str, Carried] = field(default_factory=dict)
    version: str = ""  # of the library: "2.21.5", torch's for gloo
    library: str = ""  # its path
    used: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    failure: Failure | None = None
    start: float | None = None
    left: tuple[str, ...] = ()
    seconds: float | None = None  # that it had, by what it was asked; None where nothing was said


@dataclass(frozen=True)
class Skipped:
    """A step that was to be run and was not begun, and why: what was not measured is not passed."""

    step: Step
    why: str


LEFT_OUT = (
    "it ran with a node that is left out: list the others alone (--good-nodes FILE), and ncheck probe measures them"
)


@dataclass(frozen=True)
class ProbeFacts:
    """All steps that this node had a part in, in their order. Absent with the reason where no probe was run.

    `note` says what the means do not tell of: GPUs that are there, where there was no NCCL to measure them by.
    """

    turns: tuple[Turn, ...]
    skipped: tuple[Skipped, ...] = ()
    note: str = ""

    def after(self, earlier: ProbeFacts) -> ProbeFacts:
        """Return the turns of both: a node's come in several parts."""
        return ProbeFacts((*earlier.turns, *self.turns), (*earlier.skipped, *self.skipped), self.note or earlier.note)

    def among(self, names: frozenset[str]) -> ProbeFacts:
        """Return the steps that these nodes ran by themselves; what all give without the others nobody measured."""
        gone = [turn.step for turn in self.turns if not names.issuperset(turn.step.group)]
        lost = (Skipped(step, LEFT_OUT) for step in gone if step.stage is Stage.ALL)
        return ProbeFacts(
            tuple(turn for turn in self.turns if turn.step not in gone),
            (*(one for one in self.skipped if names.issuperset(one.step.group)), *lost),
            self.note,
        )


@dataclass(frozen=True)
class MeetingFacts:
    """Where ranks can find each other that this node leads: `ids` for NCCL, each good for one step, or an address.

    `why` tells why there is none, "" where there is.
    """

    ids: tuple[str, ...] = ()
    address: str = ""
    port: int = 0
    version: str = ""
    library: str = ""
    why: str = ""


TURN, MEETING, SWEEP = Answer("turn"), Answer("meeting"), Answer("sweep")


def _probed(evidence: Evidence) -> Read[ProbeFacts]:
    from ncheck.facts.probe_replies import probed

    return probed(evidence)


def _meeting(evidence: Evidence) -> Read[MeetingFacts]:
    from ncheck.facts.probe_replies import meeting

    return meeting(evidence)


# What the choice of a method, its steps and its expectations are made of.
PROBE_NEEDS = (
    *PLAN_FACTS, GpuFacts, TopologyFacts, LoadedNcclFacts, IdentityFacts, ListenFacts, ToolFacts, MeetingFacts,
)  # fmt: skip
FACTS = (
    Fact(ProbeFacts, (TURN,), _probed, MEASURING, needs=PROBE_NEEDS, exempt=exempt_unprobed),
    Fact(MeetingFacts, (MEETING,), _meeting, MEASURING, exempt=exempt_unprobed),
)
