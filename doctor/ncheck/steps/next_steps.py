"""The next step of each finding: by what is data of it already, by which nodes the scheduler is to lose, and by what
its check declares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ncheck.model.check import Check
from ncheck.model.finding import Finding, Severity
from ncheck.model.next_step import Action, NextStep
from ncheck.model.report import Report

_SURE, _LIKELY, _OPEN = 0.9, 0.7, 0.5
_REBOOT, _RESET = "systemctl reboot", "nvidia-smi --gpu-reset"  # in commands that checks have as their fix


def with_next_steps(report: Report, checks: Sequence[Check]) -> tuple[Finding, ...]:
    """Return the findings of a report whose nodes to drain are known, each with its next step."""
    unreached = {check.code for check in checks if check.says_unreached or check.explains_unreached}
    drained = {bad.node: bad.codes for bad in report.bad if bad.node in report.drain}
    blocking = {check.code: Action.FIX_FIRST for check in checks if check.blocks_plan and check.code not in unreached}
    declared = blocking | {check.code: Action(check.next_step) for check in checks if check.next_step}
    return tuple(
        replace(one, next=_step(one, drained, declared.get(one.code), dead=one.code in unreached))
        for one in report.findings
    )


def _step(finding: Finding, drained: Mapping[str, Sequence[str]], declared: Action | None, *, dead: bool) -> NextStep:
    """Return what to do about a finding. `dead`: it says that its nodes are not reached, or why. `declared`: the step
    that its check declares; what blocks every plan must be mended.

    A consequence ends with its cause, and what is no error may be left as it is: of these there is nothing to do first.
    A node is drained for the codes for which the report drains it, and for nothing else.
    """
    if finding.ignored or finding.see:
        return NextStep(Action.LOOK)
    error, command = finding.severity is Severity.ERROR, finding.fix if finding.kind == "fix" else ""
    lost = tuple(node for node in finding.nodes if finding.code in drained.get(node, ()))
    rules = (
        (_REBOOT in command, NextStep(Action.REBOOT, finding.nodes, _SURE)),
        (_RESET in command, NextStep(Action.RESET_GPU, finding.nodes, _SURE)),
        (lost and (finding.hardware or dead), NextStep(Action.DRAIN, lost, _SURE)),
        (declared and error, NextStep(declared or Action.LOOK, finding.nodes, _SURE)),
        (declared and finding.hardware, NextStep(declared or Action.LOOK, finding.nodes, _LIKELY)),
        (finding.hardware and error, NextStep(Action.TICKET, finding.nodes, _SURE)),
        (error and finding.kind != "look", NextStep(Action.FIX_FIRST, finding.nodes, _SURE)),
    )
    return next((step for applies, step in rules if applies), NextStep(Action.LOOK, finding.nodes, _OPEN))
