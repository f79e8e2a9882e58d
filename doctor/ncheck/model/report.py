"""The report: everything that one run said, as data. Every format is a reader of it; JSON is it, word for word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from ncheck.lazy_dataclass import dataclass
from ncheck.model.board import Board
from ncheck.model.evidence import Cause
from ncheck.model.finding import Finding, Verdict
from ncheck.model.plan import LaunchPlan
from ncheck.model.system import Hardware, System
from ncheck.version import __version__

SCHEMA = "ncheck.report/2"
LEAST_KEPT = 0.8  # scaling efficiency: the usual minimum in evaluations of clusters
NOISY = 0.15  # of the median, from the fastest repeat to the slowest: as far as a low bandwidth is from the expected


class Standing(str, Enum):
    """How a measured bandwidth compares with what it should be; decided once (ncheck.probe.standing).

    `unknown`: there is nothing to compare with.
    """

    OK = "ok"
    LOW = "low"
    FAR_TOO_LOW = "far too low"
    FAILED = "failed"
    UNKNOWN = "unknown"


class State(str, Enum):
    """The answer of a run in the words that every format has; decided once (ncheck.model.state)."""

    READY = "Ready"
    WARNED = "Ready, with warnings"
    ONLY_WITH_PLAN = "Ready with the launch line below, and not without it"
    NOT_READY = "Not ready"
    NOT_VERIFIED = "Not verified"
    INTERRUPTED = "Interrupted"


_NO_AGENT = (Cause.NO_PYTHON.value, Cause.NOT_ENTERED.value)  # a node that was reached, and can answer nothing


@dataclass(frozen=True)
class NodeSummary:
    """One node, as the head of the report names it.

    name: The name in the list.
    reached: True if the host key was verified, the login succeeded and a shell answered.
    address: The address of the connection; empty if none was attempted.
    port: The port of the connection; 0 if none was attempted.
    user: The user of the login.
    transport: paramiko, openssh, rsh, srun, local or recorded.
    host_name: The hostname that the node reports.
    interpreter: The Python interpreter of the job: path, version, and how it was found.
    container: The container of the job; empty for none.
    slots: Slots in the list; null if not given.
    seconds: Seconds from the first attempt to the first answer of the shell, or to the failure.
    recorded: True if the data comes from a recording.
    cause: Why the node was not reached, or its session was cut, such as host-key-changed; empty on success.
    detail: The original error message of the library, ssh or the node.
    addresses: The addresses of its interfaces with their prefix length, such as 10.1.0.7/24, by interface.
    peers_reach: Of a node that was not reached from here: whether its SSH server greets other nodes of the run; null:
        none was asked.
    """

    name: str
    reached: bool
    address: str = ""
    port: int = 0
    user: str = ""
    transport: str = ""
    host_name: str = ""
    interpreter: str = ""  # "/opt/conda/bin/python 3.11.7 (active conda)"
    container: str = ""
    slots: int | None = None
    seconds: float = 0.0
    recorded: bool = False
    cause: str = ""  # why it was not reached, or not wholly: "host-key-changed"
    detail: str = ""
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # {"eno1": ("10.1.0.7/24",)}
    peers_reach: bool | None = None  # of one that was not reached from here; None: no other node was asked

    @property
    def examined(self) -> bool:
        """Whether anything could be asked of it: no check is listed as unknown where the login or Python failed."""
        return self.reached and self.cause not in _NO_AGENT


@dataclass(frozen=True)
class Point:
    """One size of a curve: bytes per rank, seconds of one operation, and its bandwidth in GB/s (1e9 bytes per
    second).

    size: Bytes per rank.
    in_place: Whether the result overwrites the input.
    seconds: Seconds for one operation, the median of the repetitions.
    algbw: size / seconds, in GB/s (1e9 bytes per second).
    busbw: algbw times the factor of the operation, 2(n-1)/n for an all-reduce of n ranks: the load of each link, in
        GB/s.
    wrong: Number of wrong elements; null if not verified.
    repeats: How often the size was timed; null if unknown.
    spread: From the fastest repeat to the slowest, as a share of the median; null if unknown.
    """

    size: int
    in_place: bool
    seconds: float
    algbw: float
    busbw: float
    wrong: int | None = None
    repeats: int | None = None
    spread: float | None = None


@dataclass(frozen=True)
class Protocol:
    """How the size that gives a measured value was timed.

    statistic: What the value is of the times of the repeats: median or mean.
    repeats: How often the size was timed.
    warm_ups: Operations before these, which do not count.
    iterations: Operations in one repeat, one after the other; its time is divided by this number.
    wanted: How many repeats --repeats asks for; if more than repeats, there was no time for them. Null if unknown.
    spread: From the fastest repeat to the slowest, as a share of the median; null if unknown.
    """

    statistic: str
    repeats: int
    warm_ups: int
    iterations: int = 1
    wanted: int | None = None
    spread: float | None = None

    @property
    def cut(self) -> bool:
        """Whether there was no time for all repeats."""
        return self.wanted is not None and self.repeats < self.wanted

    @property
    def noisy(self) -> bool:
        """Whether its repeats differ by more than NOISY."""
        return self.spread is not None and self.spread > NOISY


@dataclass(frozen=True)
class Measurement:
    """What the probe measured, what was expected, and what limits it; GB/s are 1e9 bytes per second.

    what: What was measured.
    measured: The measured value; null if it could not be measured.
    expected: The value that the hardware should reach; null if unknown.
    unit: The unit of both, such as GB/s (1e9 bytes per second).
    limited_by: What limits the expected value.
    nodes: The nodes that took part.
    by: What carried the data, such as NCCL 2.21.5, torch 2.5.1 gloo on CPUs, or sockets, no library.
    stage: inside (one node), nics (one node by its NICs), pair, rail, scaling, all; empty for anything else.
    ranks: Number of ranks on all nodes together; 0 for none.
    lowered_by: What lowers the expected value, such as 7 of 8 rails.
    unknown: What is missing to compute the expected value.
    curve: All measured sizes, out of place and in place.
    failed: Why there is no value; empty if there is one.
    efficiency: Scaling efficiency: bandwidth as a share of that of fewer nodes; null if unknown.
    standing: How the value compares with what it should be: ok, low, far too low, failed, or unknown.
    protocol: How the largest size, which gives the value, was timed; null if unknown.
    op: The operation, such as all-reduce or all-to-all; sockets and RDMA run none, and have all-reduce.
    """

    what: str
    measured: float | None
    expected: float | None
    unit: str
    limited_by: str = ""
    nodes: tuple[str, ...] = ()
    by: str = ""
    stage: str = ""
    ranks: int = 0
    lowered_by: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    curve: tuple[Point, ...] = ()
    failed: str = ""
    efficiency: float | None = None
    standing: Standing = Standing.UNKNOWN
    protocol: Protocol | None = None
    op: str = "all-reduce"

    @property
    def ratio(self) -> float | None:
        """Measured over expected; None unless both are known."""
        return self.measured / self.expected if self.measured is not None and self.expected else None

    @property
    def scales_poorly(self) -> bool:
        """Whether it keeps less than LEAST_KEPT of what fewer nodes have."""
        return self.efficiency is not None and self.efficiency < LEAST_KEPT


@dataclass(frozen=True)
class GpuFigure:
    """One figure of a GPU that was tested alone.

    what: What was measured, such as FP32 or memory.
    value: The median, in the unit.
    unit: TFLOPS, GB/s, or us for the time of an empty kernel.
    usual: What other GPUs of its model reach, or what its data sheet lets expect; null if neither is known.
    standing: The verdict on the value.
    """

    what: str
    value: float
    unit: str
    usual: float | None = None
    standing: Standing = Standing.UNKNOWN


@dataclass(frozen=True)
class GpuAlone:
    """One GPU that was tested alone, before ranks communicated.

    node: The node.
    pci: PCI address.
    uuid: UUID by NVML.
    model: Model by NVML.
    figures: How fast it computes and copies.
    clock: MHz under load; null if NVML did not say.
    power: Watts under load; null if NVML did not say.
    temperature: Degrees Celsius under load; null if NVML did not say.
    failed: Why its test ended early; empty if it did not.
    notes: What was not measured, and why.
    """

    node: str
    pci: str
    uuid: str
    model: str
    figures: tuple[GpuFigure, ...] = ()
    clock: int | None = None
    power: float | None = None
    temperature: int | None = None
    failed: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """The bus bandwidth between two nodes in GB/s, None if it failed, and the verdict on it.

    nodes: The two nodes.
    busbw: GB/s between them; null if the test failed.
    standing: How it compares with what it should be: ok, low, far too low, failed, or unknown.
    op: The operation, such as all-reduce or all-to-all.
    """

    nodes: tuple[str, str]
    busbw: float | None
    standing: Standing = Standing.UNKNOWN
    op: str = "all-reduce"


class Share(str, Enum):
    """What a device carried, beside the devices of the plan; decided once (ncheck.probe.standing).

    `usual`: a device of the plan, and as much as the others. `less`: a device of the plan, and less than the others.
    `stray`: part of the data, by a device that is not in the plan. `inside`: loopback, between the ranks of a node.
    `little`: nothing that counts, such as ssh.
    """

    USUAL = "usual"
    LESS = "less"
    STRAY = "stray"
    INSIDE = "inside"
    LITTLE = "little"


@dataclass(frozen=True)
class Traffic:
    """Bytes that one interface or HCA port of a node carried while all nodes ran together, or else in all steps.

    node: The node.
    device: The interface, or the HCA and its port, such as mlx5_0:1.
    sent: Bytes sent.
    received: Bytes received.
    planned: Whether the launch plan uses it.
    share: usual: a device of the plan, and as much as the others. less: less than these. stray: data by a device that
        is not in the plan. inside: loopback, between the ranks of a node. little: nothing that counts.
    """

    node: str
    device: str
    sent: int
    received: int
    planned: bool
    share: Share = Share.LITTLE


@dataclass(frozen=True)
class NcclChoice:
    """What NCCL uses for one size of one operation by its cost model: predicted, and not measured.

    op: The operation.
    size: Bytes, as in the curve of the measurement.
    algorithm: Ring, Tree, NVLS, NVLSTree or PAT.
    protocol: LL, LL128 or Simple.
    channels: The most channels that it uses.
    nics: NICs of each node, of the node with the fewest; 0 inside one node.
    """

    op: str
    size: int
    algorithm: str
    protocol: str
    channels: int
    nics: int = 0


@dataclass(frozen=True)
class Probe:
    """Whether the bandwidth was measured.

    ran: Whether a test ran.
    reason: What ran, or why nothing ran.
    means: What carried the data: nccl, nccl-tests, gloo or tcp; empty if no test ran.
    launcher: What started the ranks: agents or mpirun; empty if no test ran.
    version: Version of the library that carried the data; empty if there is none.
    rounds: Number of rounds of collectives, one after another.
    pairs: Every pair of nodes that was measured by itself.
    traffic: Traffic of every interface and HCA port while all nodes ran together, or else in all steps.
    notes: What was left out, with the reason: nodes, steps, GPUs.
    choices: What NCCL uses for each size that all nodes measured together, where ncheck probe knows it; by size.
    """

    ran: bool
    reason: str
    means: str = ""
    launcher: str = ""
    version: str = ""
    rounds: int = 0
    pairs: tuple[Pair, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    notes: tuple[str, ...] = ()
    choices: tuple[NcclChoice, ...] = ()

    @property
    def sentence(self) -> str:
        """Say what was measured and how, or that nothing was, and why."""
        return self.reason if self.ran else f"no bandwidth was measured: {self.reason}"


@dataclass(frozen=True)
class MeshSample:
    """In a network of many nodes: how many of the others each node dialled.

    dialled: The nodes that a node dialled: the median.
    others: The nodes that it could have dialled.
    """

    dialled: int
    others: int

    @property
    def sentence(self) -> str:
        return f"each node dialled about {self.dialled} of {self.others:,} others"


@dataclass(frozen=True)
class RunPart:
    """One part of a run, in its order.

    part: start, log in, questions, ssh from here, slurm, between the nodes, files, measured, counters again, judged.
    seconds: Seconds of the wall clock.
    node: The node that answered last; empty if none was asked.
    question: What took that node longest; empty if nothing was asked of it.
    question_seconds: Seconds that this took on the node.
    late: Nodes that answered more than 2 s after half of the nodes, with those seconds.
    """

    part: str  # "start", "log in", "questions", "between the nodes", "measured", "judged"
    seconds: float
    node: str = ""
    question: str = ""
    question_seconds: float = 0.0
    late: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BadNode:
    """A node that a job is better off without.

    node: The node.
    reason: The first reason.
    codes: The codes of the checks that say so.
    reached: False if the node was not reached.
    unknown: True if no error names the node, but a check of it could not run.
    proved: True if the fault is the node's own: one of its hardware, or nobody reaches it. Only such a node is taken
        away from the scheduler.
    """

    node: str
    reason: str
    codes: tuple[str, ...]
    reached: bool = True
    unknown: bool = False
    proved: bool = False


@dataclass(frozen=True)
class EarlierProblem:
    """One check that had failed, or was unknown, in an earlier report, and what is known of its nodes now.

    code: The code of the check.
    check: Its name.
    nodes: The nodes of which it said so.
    failed: Those of them that a finding named; of the others the check was unknown.
    compared_with: Of a check that compares nodes: those that it had to compare with.
    gone: Those of which it says so no more.
    remains: The nodes on which it fails now; of a check that compares nodes, these may be others.
    unknown: Those of which is not known whether it is gone.
    unlisted: Those that are not in the list of nodes any more.
    """

    code: str
    check: str
    nodes: tuple[str, ...]
    failed: tuple[str, ...] = ()
    compared_with: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    remains: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()

    @property
    def is_gone(self) -> bool:
        """Whether no node that is still listed has it."""
        return bool(self.gone) and not self.remains and not self.unknown


@dataclass(frozen=True)
class LookedAgain:
    """What came of an earlier report (--failed-of).

    time: When the run of that report began.
    problems: One for each check that had failed or was unknown. If there are any, only these checks ran.
    """

    time: str
    problems: tuple[EarlierProblem, ...]


@dataclass(frozen=True)
class Report:
    """One run.

    exit_code: Exit code of the process: 0 clean, 1 findings or unknown verdicts at or above fail_on, 130 interrupted.
        (A demo exits with 0; this is the code of its report.)
    nodes: All nodes in the order of the list, reached or not.
    verdicts: One per selected check, outcome and reason, with its nodes: each node is named once per check.
    findings: Problems, worst first, ignored ones last.
    plan: How to start the job.
    measurements: Results of the bandwidth test; empty if none ran.
    probe: Whether a bandwidth test ran, and if not, why.
    version: Version of ncheck.
    seconds: Duration of the run in seconds; on the command line from the start of its process.
    fail_on: What causes exit code 1: error, warning, info, unknown.
    interrupted: True after ^C: the report is incomplete.
    recorded: True if the data of any node comes from a recording.
    dropped: Nodes that --drop-bad left out, with the reason; everything else is about the other nodes.
    bad: Nodes that a job is better off without, with the reason; none after ^C.
    drain: Of the bad nodes: those to take away from the scheduler (--max-drain), the worst first.
    time: When the run began: local time with its offset from UTC (ISO 8601). A replay has its own time.
    host: The machine that ran ncheck.
    user: The user who ran ncheck there.
    command: The command line, without secrets.
    cpus_only: True if no node that was reached has a GPU: only checks of CPUs and networks ran.
    name_python: The command that names the Python of the job, where it was not judged: nodes have GPUs, and no
        interpreter that was found there has a framework. Empty otherwise.
    gpus_alone: Each GPU that --gpu-test tested alone, before ranks communicated.
    boards: How GPUs and NICs lie, once for all nodes that are alike, the most common kind first; 16 at most.
    systems: What the nodes have, as values: one record for all nodes that are alike.
    hardware: What identifies each node that was reached, and its parts.
    mesh: Among many nodes: how many others each dialled. null: each dialled all others, or none was dialled.
    timeline: Where these seconds went, part by part. Empty for a recording.
    milder: Settings of an ncheck.toml that was only found, and that may hide what is wrong.
    news: What the history says of this run's findings (--history), a sentence each.
    level: How deep the run looked (--level): quick, standard or acceptance; empty: the recording does not say.
    beside_level: The settings that were not as the level has them, such as probe tcp.
    again: What came of the problems of an earlier report (--failed-of); null without that option.
    select: What --select named, or the codes that --failed-of or ncheck probe chose: no other check ran. Empty: all
        ran.
    state: The answer, in the words that every format has. Ready is only what was verified: all nodes were reached, some
        check passed, and none is unknown.
    schema: This format. New members may be added under the same number; none is changed or removed.
    """

    exit_code: int
    nodes: tuple[NodeSummary, ...]
    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]
    plan: LaunchPlan
    measurements: tuple[Measurement, ...]
    probe: Probe
    version: str  # ncheck's own
    seconds: float
    fail_on: tuple[str, ...]
    interrupted: bool = False  # ^C or the deadline: what was known so far
    recorded: bool = False  # any node's evidence was read from a recording, not measured now
    dropped: Mapping[str, str] = field(default_factory=dict)  # --drop-bad: node to why; the rest is without them
    bad: tuple[BadNode, ...] = ()  # none after ^C: what was not asked in time is no reason to leave a node out
    drain: tuple[str, ...] = ()  # of the bad ones: which to take away from the scheduler (--max-drain), the worst first
    time: str = ""  # when the run began: local time with its offset from UTC, "2026-11-22T13:04:05+01:00"
    host: str = ""  # the machine that ran ncheck, its user, and the command line without secrets
    user: str = ""
    command: str = ""
    cpus_only: bool = False  # no reached node has a GPU: only checks of CPUs and networks ran
    # Nodes have GPUs, and no interpreter that was found there has a framework: the command that names the job's Python
    name_python: str = ""
    gpus_alone: tuple[GpuAlone, ...] = ()  # each GPU that --gpu-test tested
    boards: tuple[Board, ...] = ()  # how GPUs and NICs lie: the kinds of nodes, the most common first
    systems: tuple[System, ...] = ()  # what the nodes have: one for those that are alike, in the order of the list
    hardware: tuple[Hardware, ...] = ()  # what identifies each node that was reached, and its parts
    mesh: MeshSample | None = None  # None: every node dialled all others, or none was dialled
    timeline: tuple[RunPart, ...] = ()  # where the seconds went; none for a recording
    milder: tuple[str, ...] = ()  # what an ncheck.toml that was only found says, and may hide: "fail-on never"
    news: tuple[str, ...] = ()  # what the history says of this run's findings (--history)
    level: str = ""  # --level; "" where a recording does not say
    beside_level: tuple[str, ...] = ()  # what was not as the level has it: "probe tcp"
    again: LookedAgain | None = None  # --failed-of
    select: tuple[str, ...] = ()  # what the run was limited to; () is all checks
    state: State = State.NOT_VERIFIED
    schema: str = SCHEMA

    @property
    def system_of(self) -> dict[str, System]:
        """What each node has, by its name."""
        return {node: system for system in self.systems for node in system.nodes}


def no_report(reason: str) -> Report:
    """Return a report that says why there is none."""
    return Report(0, (), (), (), LaunchPlan(notes=(reason,)), (), Probe(ran=False, reason=reason), __version__, 0.0, ())
