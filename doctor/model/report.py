"""The report: everything that one run said, as data. Every format is a reader of it; JSON is it, word for word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.model.finding import Finding, Verdict
from doctor.model.plan import LaunchPlan

SCHEMA = "ncheck.report/1"


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
class Measurement:
    """What the probe saw, with what it should have seen and the term that limits it; GB/s are 1e9 bytes a second."""

    what: str
    measured: float | None
    expected: float | None
    unit: str
    limited_by: str = ""
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probe:
    """Whether a bandwidth probe ran, and if not, why not: no line of the report may suggest that one did."""

    ran: bool
    reason: str


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
