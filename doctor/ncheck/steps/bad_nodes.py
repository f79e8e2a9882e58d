"""Which nodes a job is better off without: one rule, for the report, --good-nodes and --drop-bad.

A node is bad that was not reached, that an error names, or on which a check crashed or is unknown: not known is not
good. What --ignore names does not count, nor what the plan itself mends or has no use for, nor what is unknown only for
want of other nodes to compare with: then those are bad.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ncheck.model.check import Check
from ncheck.model.evidence import Cause
from ncheck.model.finding import Outcome, Severity
from ncheck.model.report import BadNode, Report
from ncheck.settings import Settings
from ncheck.steps.blockers import measures, mended, no_use_for
from ncheck.steps.judge import excused_pairs


def found_bad(report: Report, checks: Sequence[Check], settings: Settings) -> tuple[BadNode, ...]:
    """Return the bad nodes in the order of the list. A finding with its cause elsewhere is no fault of its
    nodes. With --force, an unknown verdict does no harm.
    """
    codes: dict[str, dict[str, None]] = {}
    reasons = _unreached(report)
    harmless = {
        check.code
        for check in checks
        if mended(check, report)
        or no_use_for(check.listed, settings.launcher)
        or check.about_ncheck
        or not check.blames_node
    }
    for finding in report.findings:
        if finding.severity is Severity.ERROR and not finding.ignored and finding.code not in harmless:
            for node in () if finding.see else finding.nodes:
                reasons.setdefault(node, BadNode(node, f"{finding.code} {finding.check}: {finding.message}", ()))
                codes.setdefault(node, {})[finding.code] = None
    unmeasured = {
        check.code for check in checks if measures(check.listed)
    }  # no node is at fault where nothing was measured
    for node, bad in _unknown(report, checks, settings, harmless | unmeasured).items():
        reasons.setdefault(node, bad)
    found = (reasons[node.name] for node in report.nodes if node.name in reasons)
    dead, broken = _dead(report), {check.code for check in checks if check.hardware}
    return tuple(
        replace(
            bad,
            codes=(named := tuple(codes.get(bad.node, bad.codes))),
            proved=bad.node in dead or not (bad.unknown or broken.isdisjoint(named)),
        )
        for bad in found
    )


def to_drain(report: Report, checks: Sequence[Check], max_drain: float) -> tuple[str, ...]:
    """Return the nodes to take away from the scheduler, the worst first, and no more than --max-drain allows.

    Only a fault that is proved to be the node's own is a reason. Where every node has one, the cause lies elsewhere,
    and none is drained.
    """
    hardware = {check.code for check in checks if check.hardware}
    faulty = [bad for bad in report.bad if bad.proved]
    if len(faulty) == len(report.nodes) > 1:
        return ()
    faulty.sort(key=lambda bad: (-len(hardware.intersection(bad.codes)), bad.reached, -len(bad.codes)))
    most = max(int(len(report.nodes) * max_drain / 100), 1)
    return tuple(bad.node for bad in faulty[:most])


def _dead(report: Report) -> set[str]:
    """Return the nodes that nobody reaches: no other node that was asked does, or Slurm itself does not."""
    if not any(node.reached for node in report.nodes):
        return set()
    lost = (node for node in report.nodes if not node.reached)
    return {node.name for node in lost if node.peers_reach is False or node.cause == Cause.STEP_NOT_STARTED.value}


def _unreached(report: Report) -> dict[str, BadNode]:
    return {
        node.name: BadNode(
            node.name, f"not reached: {node.cause}{': ' if node.detail else ''}{node.detail}", (), reached=False
        )
        for node in report.nodes
        if not node.reached
    }


def _unknown(
    report: Report, checks: Sequence[Check], settings: Settings, harmless: Collection[str]
) -> Mapping[str, BadNode]:
    """Return the nodes on which a check is unknown or crashed, with the first reason."""
    excused = excused_pairs(checks, tuple(node.name for node in report.nodes), settings.ignore)
    counted = {Outcome.CRASHED} if settings.force else {Outcome.CRASHED, Outcome.UNKNOWN}
    reasons: dict[str, BadNode] = {}
    for verdict in report.verdicts:
        if verdict.outcome in counted and verdict.code not in harmless and not verdict.others_unread:
            reason = f"{verdict.code} {verdict.check} {verdict.outcome.value}: {verdict.reason}"
            for node in verdict.nodes:
                if node not in reasons and (verdict.code, node) not in excused:
                    reasons[node] = BadNode(node, reason, (verdict.code,), unknown=True)
    return reasons
