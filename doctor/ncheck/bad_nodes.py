"""Which nodes a job is better off without: one rule, for the report, --good-nodes and --drop-bad.

A node is bad that was not reached, that an error names, or on which a check crashed or is unknown: not known is not
good. What --ignore names does not count, nor what the plan itself mends or has no use for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ncheck.blockers import measures, mended, no_use_for
from ncheck.judge import excused_pairs
from ncheck.model.check import Check
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.report import BadNode, Report
from ncheck.settings import Settings


def bad_nodes(report: Report, checks: Sequence[Check], settings: Settings) -> dict[str, str]:
    """Return the bad nodes with the reason, in the order of the list. With --force, an unknown verdict does no harm."""
    return {bad.node: bad.reason for bad in found_bad(report, checks, settings)}


def found_bad(report: Report, checks: Sequence[Check], settings: Settings) -> tuple[BadNode, ...]:
    """Return the bad nodes in the order of the list."""
    lost = {node.name: node for node in report.nodes if not node.reached}
    harmless = {check.code for check in checks if mended(check, report) or no_use_for(check, settings.launcher)}
    errors: dict[str, list[Finding]] = {}
    for finding in report.findings:
        counts = finding.severity is Severity.ERROR and not finding.ignored and finding.code not in harmless
        if counts and not finding.see:  # a finding with a cause elsewhere is no fault of its nodes
            for node in finding.nodes:
                errors.setdefault(node, []).append(finding)
    unmeasured = {check.code for check in checks if measures(check)}  # no node is at fault where nothing was measured
    unknown = _unknown(report, checks, settings, harmless | unmeasured)
    found = []
    for name in (node.name for node in report.nodes):
        codes = tuple(dict.fromkeys(finding.code for finding in errors.get(name, ())))
        if unreached := lost.get(name):
            reason = f"not reached: {unreached.cause}{': ' if unreached.detail else ''}{unreached.detail}"
            found.append(BadNode(name, reason, codes, reached=False))
        elif codes:
            first = errors[name][0]
            found.append(BadNode(name, f"{first.code} {first.check}: {first.message}", codes))
        elif verdict := unknown.get(name):
            reason = f"{verdict.code} {verdict.check} {verdict.outcome.value}: {verdict.reason}"
            found.append(BadNode(name, reason, (verdict.code,), unknown=True))
    return tuple(found)


def _unknown(
    report: Report, checks: Sequence[Check], settings: Settings, harmless: Collection[str]
) -> Mapping[str, Verdict]:
    """Return the nodes on which a check is unknown or crashed, with the first such verdict."""
    excused = excused_pairs(checks, tuple(node.name for node in report.nodes), settings)
    counted = {Outcome.CRASHED} if settings.force else {Outcome.CRASHED, Outcome.UNKNOWN}
    found: dict[str, Verdict] = {}
    for verdict in report.verdicts:
        passed_over = verdict.code in harmless or (verdict.code, verdict.node) in excused
        if verdict.outcome in counted and not passed_over:
            found.setdefault(verdict.node, verdict)
    return found
