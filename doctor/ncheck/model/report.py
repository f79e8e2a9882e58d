"""The report: everything that one run said, as data. Every format is a reader of it; JSON is it, word for word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ncheck.model.finding import Finding, Verdict
from ncheck.model.plan import LaunchPlan

SCHEMA = "ncheck.report/1"


# Shares from which on a measurement is judged, by the checks and in every picture alike.
LOW, FAR_TOO_LOW = 0.85, 0.75  # of what is expected; healthy systems reach 0.93 to 1.0


LEAST_KEPT = 0.8  # of what fewer nodes have: what evaluations of clusters ask for


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
    facts: Mapping[str, str] = field(default_factory=dict)  # one line a topic: {"GPUs": "8 x NVIDIA H100 80GB HBM3"}


@dataclass(frozen=True)
class Point:
    """One size of a curve: bytes a rank, seconds of one all-reduce, and what they make in GB/s (1e9 bytes a second).

    `wrong` counts the elements that were not what they should be; None: they were not verified.
    """

    size: int
    in_place: bool
    seconds: float
    algbw: float
    busbw: float
    wrong: int | None = None


@dataclass(frozen=True)
class Measurement:
    """What the probe saw, with what it should have seen and the term that limits it; GB/s are 1e9 bytes a second.

    `by` is what carried the data ("NCCL 2.21.5", "torch 2.5.1 gloo on CPUs", "sockets, no library"). `lowered_by` are
    the facts that make the expected value less than the hardware's best ("7 of 8 rails"), `unknown` what would have
    been needed to tell it. `failed` says why there is no value. `efficiency` is the share that so many nodes keep of
    what fewer have, each held against its own expectation; None where there is nothing to compare with.
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

    @property
    def ratio(self) -> float | None:
        """Measured over expected, where both are known."""
        return self.measured / self.expected if self.measured is not None and self.expected else None


@dataclass(frozen=True)
class Pair:
    """The bus bandwidth between two nodes in GB/s; None: it was tried and failed."""

    nodes: tuple[str, str]
    busbw: float | None


@dataclass(frozen=True)
class Traffic:
    """What one interface or HCA port of a node carried while all nodes ran together (or in all steps), in bytes.

    `planned` tells that the plan means the data to go by it.
    """

    node: str
    device: str
    sent: int
    received: int
    planned: bool


@dataclass(frozen=True)
class Probe:
    """Whether a bandwidth probe ran, and if not, why not: no line of the report may suggest that one did.

    `means` is what carried the data (nccl, nccl-tests, gloo, tcp), `launcher` what started the ranks. `notes` say what
    was left out, and why: nodes without a part, steps that were not begun, GPUs that could not be measured.
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
    schema: str = SCHEMA
