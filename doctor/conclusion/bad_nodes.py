"""Which nodes a job is better off without: one rule, for --good-nodes and for --drop-bad.

A node is bad that was not reached, that an error names, or on which a check crashed or could not tell: not known is not
good. What --ignore names does not count, nor what the plan itself mends or has no use for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from doctor.conclusion.conclusion import excused_pairs
from doctor.conclusion.objections import measures, mended, no_use_for
from doctor.model.check import Check
from doctor.model.finding import Outcome, Severity
from doctor.model.report import Report
from doctor.settings import Settings


def bad_nodes(report: Report, checks: Sequence[Check], settings: Settings) -> dict[str, str]:
    """Return the bad nodes with why, in the order of the list. With --force, what could not be told does no harm."""
    why = _lost(report)
    harmless = {one.code for one in checks if mended(one.code, report) or no_use_for(one, settings.launcher)}
    for finding in report.findings:
        if finding.severity is Severity.ERROR and not finding.ignored and finding.code not in harmless:
            for node in finding.nodes:
                why.setdefault(node, f"{finding.code} {finding.check}: {finding.message}")
    unmeasured = {one.code for one in checks if measures(one)}  # why nothing was measured is no fault of a node's
    for node, told in _untold(report, checks, settings, harmless | unmeasured).items():
        why.setdefault(node, told)
    return {node.name: why[node.name] for node in report.nodes if node.name in why}


def _lost(report: Report) -> dict[str, str]:
    return {
        node.name: f"not reached: {node.cause}{': ' if node.detail else ''}{node.detail}"
        for node in report.nodes
        if not node.reached
    }


def _untold(report: Report, checks: Sequence[Check], settings: Settings, harmless: Collection[str]) -> dict[str, str]:
    """Return the nodes of which not all could be told, with the first reason."""
    excused = excused_pairs(checks, tuple(node.name for node in report.nodes), settings)
    counted = {Outcome.CRASHED} if settings.force else {Outcome.CRASHED, Outcome.UNKNOWN}
    found: dict[str, str] = {}
    for verdict in report.verdicts:
        passed_over = verdict.code in harmless or (verdict.code, verdict.node) in excused
        if verdict.outcome in counted and not passed_over:
            how = "crashed" if verdict.outcome is Outcome.CRASHED else "could not tell"
            found.setdefault(verdict.node, f"{verdict.code} {verdict.check} {how}: {verdict.reason}")
    return found
