"""The state of the cluster by a report, and the verdicts that are no answer: decided here, printed by every format."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ncheck.model.evidence import INTERRUPTED, Cause
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.model.report import Report, State
from ncheck.parity import nodes_by_value

_BAD = (Severity.ERROR.value, Severity.WARNING.value)


def state_of(report: Report) -> State:
    """Return the state. Ready is only what was verified: every node was reached, no check is unknown, some passed.

    A run that left nodes out (--drop-bad) has a warning.
    """
    if report.interrupted:
        return State.INTERRUPTED
    relevant = [one for one in report.findings if not one.ignored and matters(one.severity, report.fail_on)]
    errors = [one for one in relevant if one.severity is Severity.ERROR]
    reached = all(node.reached for node in report.nodes)
    unknown = bool(unknown_by_cause(report)[0])
    if errors:
        avoided = _reached_or_named(report, errors) and not unknown and _only_without_plan(report, errors)
        return State.ONLY_WITH_PLAN if avoided else State.NOT_READY
    passed = any(verdict.outcome is Outcome.PASSED for verdict in report.verdicts)
    if unknown or not reached or not passed:
        return State.NOT_VERIFIED
    return State.WARNED if relevant or report.dropped else State.READY


def matters(severity: Severity, fail_on: Collection[str]) -> bool:
    """Whether findings of this severity change the state."""
    return severity.value in _BAD or "info" in fail_on


def _reached_or_named(report: Report, errors: Collection[Finding]) -> bool:
    """Whether some error names each node that was not reached."""
    named = {node for one in errors for node in one.nodes}
    return all(node.reached or node.name in named for node in report.nodes)


def _only_without_plan(report: Report, errors: Collection[Finding]) -> bool:
    """Whether the launch plan can be used, and keeps the job from each error."""
    plan = report.plan
    return bool(plan.lines) and not plan.blockers and all(one.code in plan.avoids for one in errors if not one.see)


def unreached_and_unknown(report: Report) -> tuple[list[Verdict], list[Verdict]]:
    """Return the verdicts that are unknown because the node was not examined, and all others that are no answer.

    All that ^C left without an answer has one reason.
    """
    lost = {node.name for node in report.nodes if not node.examined}
    not_run: list[Verdict] = []
    unknown: list[Verdict] = []
    for one in report.verdicts:
        if one.outcome is not Outcome.UNKNOWN:
            continue
        unfinished = report.interrupted and (INTERRUPTED in one.reason or Cause.DEADLINE.value in one.reason)
        for part, reason, nodes in (
            (not_run, one.reason, tuple(node for node in one.nodes if node in lost)),
            (unknown, INTERRUPTED if unfinished else one.reason, tuple(node for node in one.nodes if node not in lost)),
        ):
            if nodes:
                part.append(replace(one, reason=reason, nodes=nodes))
    return not_run, [*unknown, *(one for one in report.verdicts if one.outcome is Outcome.CRASHED)]


def unknown_by_cause(report: Report) -> tuple[list[Verdict], dict[tuple[str, ...], list[Verdict]]]:
    """Return the unknown verdicts that nothing explains, and by the codes of their causes those that a finding does:
    what they need could not be read, and why that is has a finding of its own.
    """
    causes: dict[str, dict[str, tuple[str, ...]]] = {}  # by reason, the codes by node
    for finding in report.findings:
        if finding.see:
            causes.setdefault(finding.message.partition(": ")[2], {}).update(dict.fromkeys(finding.nodes, finding.see))
    plain: list[Verdict] = []
    explained: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in unreached_and_unknown(report)[1]:
        if not (known := causes.get(verdict.reason)):
            plain.append(verdict)
            continue
        for codes, nodes in nodes_by_value({node: known.get(node, ()) for node in verdict.nodes}).items():
            (explained.setdefault(codes, []) if codes else plain).append(replace(verdict, nodes=nodes))
    return plain, explained
