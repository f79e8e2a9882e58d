"""One row per node, always the same columns or those of --columns, never wrapped: `kubectl get nodes` of machines.

Columns are apart by two spaces or more, so that a cell may have single spaces. `-`: the node does not have it, or it
was not asked; `?`: it should have been readable and was not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from ncheck.lazy_dataclass import dataclass
from ncheck.model.finding import Outcome, Severity
from ncheck.model.report import NodeSummary, Report
from ncheck.model.state import matters, unknown_by_cause
from ncheck.model.system import System
from ncheck.report import text as words
from ncheck.report.language import tr
from ncheck.report.state import answer
from ncheck.report.summary import names_in, origin, unreached, urgency
from ncheck.report.tables import aligned
from ncheck.report.text import FoldedFinding, fold_findings
from ncheck.settings.values import COLUMNS

_NONE, _UNREAD = "-", "?"


@dataclass(frozen=True)
class _Row:
    """All that a cell of one node is made of.

    findings: Those that name it and follow from no other, the worst first: a healthy node is not to blame for a slow
        one.
    unknown: Whether a check is, and no finding explains it, or none passed.
    """

    report: Report
    node: NodeSummary
    system: System
    findings: Sequence[FoldedFinding]
    unknown: bool


def print_report(
    report: Report,
    stream: TextIO,
    environ: Mapping[str, str],  # noqa: ARG001  plain lines
    *,
    color: bool | None = None,  # noqa: ARG001
    columns: Sequence[str] = COLUMNS,
) -> None:
    """Print the table, and below it the origin and the answer."""
    rows = [tuple(tr(name.upper()) for name in columns), *(_cells(row, columns) for row in _rows(report))]
    stream.writelines(f"{row.rstrip()}\n" for row in aligned(rows))
    stream.write(f"{' · '.join(origin(report))}\n{answer(report).text}\n")


def _rows(report: Report) -> list[_Row]:
    systems = report.system_of
    passed = {node for one in report.verdicts if one.outcome is Outcome.PASSED for node in one.nodes}
    unknown = {*names_in(unknown_by_cause(report)[0]), *(node.name for node in report.nodes if node.name not in passed)}
    findings: dict[str, list[FoldedFinding]] = {}
    for one in sorted((one for one in fold_findings(report.findings) if not one.see), key=urgency):
        for name in one.nodes:
            findings.setdefault(name, []).append(one)
    return [
        _Row(report, node, systems.get(node.name, System()), findings.get(node.name, ()), node.name in unknown)
        for node in report.nodes
    ]


def _cells(row: _Row, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(words.line(_CELLS[name](row)) or _NONE for name in columns)


def _state(row: _Row) -> str:
    """Return the state of the node in one word; what --ignore names changes nothing."""
    relevant = [one for one in row.findings if not one.ignored and matters(one.severity, row.report.fail_on)]
    if not row.node.reached:
        return "unreachable"
    if any(one.severity is Severity.ERROR for one in relevant):
        return "failed"
    if row.unknown or not row.node.examined:
        return "unknown"
    if relevant:
        return "warning"
    return "passed" if row.report.select else "ready"  # the checks that did not run might say otherwise


def _shown(topic: str, text_of: Callable[[System], str]) -> Callable[[_Row], str]:
    """Return the reader of one cell of what the node has; `topic` says in System why there is none."""

    def cell(row: _Row) -> str:
        if topic in row.system.unknown or not row.node.reached:
            return _UNREAD
        return text_of(row.system) if getattr(row.system, topic) is not None else _NONE

    return cell


def _gpus(system: System) -> str:
    models = system.gpus.models if system.gpus else {}
    return " + ".join(f"{count} x {model}" for model, count in models.items())


def _wires(system: System) -> str:
    """Return the interfaces that can carry a job's data now: "bond0,eno1"."""
    return ",".join(wire.name for wire in system.interfaces or () if wire.running and wire.network)


def _rails(system: System) -> str:
    """Return how many ports of HCAs are active, of how many: "7/8"."""
    ports = system.ports or ()
    return f"{sum(port.state == 'Active' for port in ports)}/{len(ports)}" if ports else ""


def _busbw(row: _Row) -> str:
    """Return the bandwidth of the largest test that the node took part in."""
    taken = [one for one in row.report.measurements if row.node.name in one.nodes]
    if not taken:
        return _NONE
    one = max(taken, key=lambda one: (len(one.nodes), one.ranks))
    return _UNREAD if one.measured is None else f"{one.measured:.1f} {one.unit}"


def _worst(row: _Row) -> str:
    if row.findings:
        return f"{row.findings[0].code} {row.findings[0].summary}"
    return _NONE if row.node.reached else unreached(row.node)


_CELLS: Mapping[str, Callable[[_Row], str]] = {
    "node": lambda row: row.node.name,
    "state": lambda row: tr(_state(row)),
    "gpus": _shown("gpus", _gpus),
    "driver": _shown("gpus", lambda system: system.gpus.driver if system.gpus else ""),
    "nccl": _shown("nccl", lambda system: system.nccl or ""),
    "nic": _shown("interfaces", _wires),
    "rails": _shown("ports", _rails),
    "busbw": _busbw,
    "worst": _worst,
}  # fmt: skip
