"""Which nodes a job is better off without: one rule, for --good-nodes and for --drop-bad.

A node is bad that was not reached, that an error names, or on which a check crashed or is unknown: not known is not
good. What --ignore names does not count, nor what the plan itself mends or has no use for, nor what is unknown only for
want of other nodes to compare with: then those are bad.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ncheck.blockers import measures, mended, no_use_for
from ncheck.judge import excused_pairs
from ncheck.model.check import Check
from ncheck.model.finding import Outcome, Severity
from ncheck.model.report import Report
from ncheck.settings import Settings


def bad_nodes(report: Report, checks: Sequence[Check], settings: Settings) -> dict[str, str]:
    """Return the bad nodes with the reason, in the order of the list. With --force, an unknown verdict does no harm."""
    reasons = _unreached(report)
    harmless = {
        check.code
        for check in checks
        if mended(check, report) or no_use_for(check, settings.launcher) or not check.blames_node
    }
    for finding in report.findings:
        if finding.severity is Severity.ERROR and not finding.ignored and finding.code not in harmless:
            for node in finding.nodes:
                reasons.setdefault(node, f"{finding.code} {finding.check}: {finding.message}")
    unmeasured = {check.code for check in checks if measures(check)}  # no node is at fault where nothing was measured
    for node, reason in _unknown(report, checks, settings, harmless | unmeasured).items():
        reasons.setdefault(node, reason)
    return {node.name: reasons[node.name] for node in report.nodes if node.name in reasons}


def _unreached(report: Report) -> dict[str, str]:
    return {
        node.name: f"not reached: {node.cause}{': ' if node.detail else ''}{node.detail}"
        for node in report.nodes
        if not node.reached
    }


def _unknown(
    report: Report, checks: Sequence[Check], settings: Settings, harmless: Collection[str]
) -> Mapping[str, str]:
    """Return the nodes on which a check is unknown or crashed, with the first reason."""
    excused = excused_pairs(checks, tuple(node.name for node in report.nodes), settings)
    counted = {Outcome.CRASHED} if settings.force else {Outcome.CRASHED, Outcome.UNKNOWN}
    reasons: dict[str, str] = {}
    for verdict in report.verdicts:
        passed_over = verdict.code in harmless or (verdict.code, verdict.node) in excused
        if verdict.outcome in counted and not passed_over and not verdict.others_unread:
            reasons.setdefault(
                verdict.node, f"{verdict.code} {verdict.check} {verdict.outcome.value}: {verdict.reason}"
            )
    return reasons
