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
    """One node, as the head of the report names it. `reached` is the login alone; see its verdicts for the rest."""

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
    """One size of a curve: bytes per rank, seconds of one all-reduce, and its bandwidth in GB/s (1e9 bytes per second).

    `wrong` counts the wrong elements; None: they were not verified. `repeats` is how often it was timed, and `spread`
    the share of the median from the fastest repeat to the slowest; None: unknown.
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

    `warm_ups` all-reduces do not count. Then each of the `repeats` times so many `iterations` of the all-reduce, one
    after the other; `statistic` says what the value is of these times: their median, or their mean. `wanted` repeats
    were asked for (--repeats); if that is more, there was no time for them. `spread` is the share of the median from
    the fastest repeat to the slowest; None if it is unknown.
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

    `by` is what carried the data ("NCCL 2.21.5", "torch 2.5.1 gloo on CPUs", "sockets, no library"). `lowered_by` are
    facts that make the expected value less than the hardware's best ("7 of 8 rails"). `unknown` lists the unknown facts
    without which nothing can be expected. `failed` says why there is no value. `efficiency` is the scaling efficiency:
    the share of the bandwidth of fewer nodes that this group keeps, each divided by its own expectation; None if there
    is nothing to compare with. `standing` is the verdict on the value. `protocol` is how it was timed, None if unknown.
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
    """One figure of a GPU that was tested alone. `value` and `usual`: in the unit; `usual`: what the other GPUs of its
    model reach, or what its data sheet lets expect, None if neither is known. `standing`: the verdict on the value.
    """

    what: str
    value: float
    unit: str
    usual: float | None = None
    standing: Standing = Standing.UNKNOWN


@dataclass(frozen=True)
class GpuAlone:
    """One GPU that was tested alone, before ranks communicated. `clock`: MHz, `power`: watts, `temperature`: degrees
    Celsius, all of them under load and None if NVML did not say. `failed`: why the test ended early, "" if it did not.
    `notes`: what was not measured, and why.
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
    """The bus bandwidth between two nodes in GB/s, None if it failed, and the verdict on it."""

    nodes: tuple[str, str]
    busbw: float | None
    standing: Standing = Standing.UNKNOWN


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

    `planned`: the plan sends the data through it. `share` is the verdict on it.
    """

    node: str
    device: str
    sent: int
    received: int
    planned: bool
    share: Share = Share.LITTLE


@dataclass(frozen=True)
class Probe:
    """Whether the bandwidth was measured; `reason` says by what, or why not.

    `means` is the method that carried the data (nccl, nccl-tests, gloo, tcp), `launcher` what started the ranks.
    `notes` say what was left out and why: nodes that took no part, skipped steps, GPUs that could not be measured.
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

    @property
    def sentence(self) -> str:
        """Say what was measured and how, or that nothing was, and why."""
        return self.reason if self.ran else f"no bandwidth was measured: {self.reason}"


@dataclass(frozen=True)
class MeshSample:
    """How many of the `others` each node dialled, where they were too many to dial all: `dialled` is the median."""

    dialled: int
    others: int

    @property
    def sentence(self) -> str:
        return f"each node dialled about {self.dialled} of {self.others:,} others"


@dataclass(frozen=True)
class RunPart:
    """One part of a run, in its order. `node` answered last in it, and `question` is what took that node longest, with
    its seconds. `late` are nodes that made the others wait, each with the seconds that it came after half of them.
    """

    part: str  # "start", "log in", "questions", "between the nodes", "measured", "judged"
    seconds: float
    node: str = ""
    question: str = ""
    question_seconds: float = 0.0
    late: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BadNode:
    """A node that a job is better off without. `codes` are those of the checks that say so.

    `unknown`: no error names the node, but a check of it could not run. Not known is not good, and no fault either.
    `proved`: the fault is proved to be the node's own: one of its hardware, or nobody reaches it. What is wrong with
    this machine, with the user's settings there or with the network in between is not.
    """

    node: str
    reason: str
    codes: tuple[str, ...]
    reached: bool = True
    unknown: bool = False
    proved: bool = False


@dataclass(frozen=True)
class Report:
    """One run. `exit_code` is what the process ends with (a demo ends with its own)."""

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
    state: State = State.NOT_VERIFIED
    schema: str = SCHEMA

    @property
    def system_of(self) -> dict[str, System]:
        """What each node has, by its name."""
        return {node: system for system in self.systems for node in system.nodes}
