"""One run as the history keeps it: who was examined and how each node was, in a form without secrets or raw answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING

from ncheck.lazy_dataclass import dataclass
from ncheck.model.finding import Outcome, Severity

if TYPE_CHECKING:
    from ncheck.model.report import Report


STATES = ("good", "bad", "unknown", "unreached")
EXAMINED = STATES[:3]
TRIAGE = "triage"  # a kind of run
_RAN = (Outcome.PASSED, Outcome.FAILED)


@dataclass(frozen=True)
class Seen:
    """One finding that is no consequence of another. `hardware`: it is a fault of the nodes' own parts."""

    code: str
    check: str
    severity: str
    nodes: tuple[str, ...]
    summary: str
    hardware: bool = False


@dataclass(frozen=True)
class Kept:
    """What stays the same from run to run until something changes. `kind`: host, boot, machine, gpu, hca, or counter.

    `place`: of a GPU its PCI address, of an HCA or a counter its name. `value`: of a GPU its UUID, of an HCA its GUID.
    `detail`: the serial number of a GPU, where it says it.
    """

    node: str
    kind: str
    place: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class Figure:
    """A bandwidth or another figure that was measured, in the unit. `place`: the PCI address of one GPU, "" for the
    nodes together. `usual`: what was expected, None if nothing was.
    """

    nodes: tuple[str, ...]
    place: str
    what: str
    value: float
    unit: str
    usual: float | None = None


@dataclass(frozen=True)
class Entry:
    """One run. `time`: seconds since 1970. `kind`: check, replay or triage.

    `nodes`: their names by their state, one of STATES, as the report has it. `checks`: the codes of those that ran. A
    triage examined no node, so it has neither: its findings are the diagnoses, on the nodes that they name.
    """

    time: float
    kind: str
    host: str = ""
    version: str = ""
    exit_code: int = 0
    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    findings: tuple[Seen, ...] = ()
    kept: tuple[Kept, ...] = ()
    figures: tuple[Figure, ...] = ()

    def of(self, state: str) -> tuple[str, ...]:
        """Return the nodes in this state."""
        return self.nodes.get(state, ())


def entry_of(report: Report, kind: str = "check", time: float | None = None) -> Entry:
    """Return what the history keeps of a report. `time`: when the nodes answered, in place of the report's time."""
    states: dict[str, list[str]] = {}
    for name, state in _states(report).items():
        states.setdefault(state, []).append(name)
    findings = tuple(
        Seen(one.code, one.check, one.severity.value, one.nodes, one.summary or one.title, one.hardware)
        for one in report.findings
        if not (one.see or one.ignored or one.severity is Severity.INFO)
    )
    return Entry(
        datetime.fromisoformat(report.time).timestamp() if time is None else time,
        kind, report.host, report.version, report.exit_code,
        nodes={state: tuple(names) for state, names in states.items()},
        checks=tuple(sorted({one.code for one in report.verdicts if one.outcome in _RAN})),
        findings=findings, kept=tuple(_kept(report)), figures=tuple(_figures(report)),
    )  # fmt: skip


def _states(report: Report) -> dict[str, str]:
    """Return how each node was. After ^C a node that was reached is unknown, since not everything was asked, and of
    one that was not reached yet nothing is said.
    """
    unknown = {bad.node for bad in report.bad if bad.unknown}
    bad = {bad.node for bad in report.bad if not bad.unknown}
    states: dict[str, str] = {}
    for node in report.nodes:
        doubtful = report.interrupted or node.name in unknown
        if node.reached:
            states[node.name] = "bad" if node.name in bad else "unknown" if doubtful else "good"
        elif not report.interrupted:
            states[node.name] = "unreached"
    return states


def _kept(report: Report) -> Iterator[Kept]:
    for one in report.hardware:
        named = (("host", one.host_name), ("boot", one.boot_id), ("machine", one.serial))
        yield from (Kept(one.node, kind, "", value) for kind, value in named if value)
        yield from (Kept(one.node, "gpu", pci, uuid, one.gpu_serials.get(pci, "")) for pci, uuid in one.gpus.items())
        yield from (Kept(one.node, "hca", name, guid) for name, guid in one.hcas.items())
        yield from (Kept(one.node, "counter", name, str(count)) for name, count in one.counters.items())


def _figures(report: Report) -> Iterator[Figure]:
    for one in report.measurements:
        if one.measured is not None and isfinite(one.measured):
            yield Figure(one.nodes, "", f"{one.stage} {one.what}".strip(), one.measured, one.unit, one.expected)
    for gpu in report.gpus_alone:
        yield from (Figure((gpu.node,), gpu.pci, one.what, one.value, one.unit, one.usual) for one in gpu.figures)
