"""The next step of a finding: a reset or reboot that its fix is, a drain where the scheduler gets one, else the fix."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from ncheck.model.finding import DO, Finding, Severity
from ncheck.model.next_step import Action, NextStep
from ncheck.model.report import BadNode, NodeSummary, Report, no_report
from ncheck.report import show
from ncheck.report.draining import codes_of
from ncheck.report.text import fold_findings, next_of
from ncheck.steps.next_steps import with_next_steps
from ncheck_checks.gpus.gpu_memory_worn import gpu_memory_worn
from ncheck_checks.host.temporary_folder_full import temporary_folder_full
from ncheck_checks.ncheck.node_not_reached import node_not_reached
from ncheck_checks.network.job_port_taken import job_port_taken

RESET, REBOOT, BOTH = "sudo nvidia-smi --gpu-reset -i 0", "sudo systemctl reboot", ("n1", "n2")


def finding(fix: str = "ip -br link", code: str = "NC801", nodes: tuple[str, ...] = BOTH, **more: Any) -> Finding:
    return replace(Finding(code, "node-is-red", Severity.ERROR, nodes, "it is red", (), fix), **more)


def report(*findings: Finding) -> Report:
    """Return a report that drains n1 for NC801, and not n2."""
    bad = tuple(BadNode(node, "", ("NC801", "NC001"), proved=True) for node in BOTH)
    nodes = tuple(NodeSummary(node, reached=True) for node in BOTH)
    found = replace(no_report(""), nodes=nodes, findings=findings, bad=bad, drain=("n1",))
    return replace(found, findings=with_next_steps(found, [node_not_reached]))


# A finding, and the action, the nodes and the confidence of its step.
STEPS: dict[str, tuple[Finding, tuple[str, tuple[str, ...], float]]] = {
    "what a command mends": (finding(), ("fix-first", BOTH, 0.9)),
    "what a sentence mends": (finding(kind=DO), ("fix-first", BOTH, 0.9)),
    "what a command only shows": (finding(kind="look"), ("look", BOTH, 0.5)),
    "what a job may live with": (finding(severity=Severity.WARNING), ("look", BOTH, 0.5)),
    "what a reset mends": (finding(RESET, hardware=True), ("reset-gpu", BOTH, 0.9)),
    "what a reboot mends": (finding(REBOOT), ("reboot", BOTH, 0.9)),
    "a reset that is only named": (finding(RESET, kind=DO), ("fix-first", BOTH, 0.9)),
    "broken hardware, of which one node is drained": (finding(hardware=True), ("drain", ("n1",), 0.9)),
    "broken hardware for which no node is drained": (
        finding(code="NC802", kind="look", hardware=True), ("ticket", BOTH, 0.9)),
    "hardware that may go on": (
        finding(code="NC802", hardware=True, severity=Severity.WARNING), ("look", BOTH, 0.5)),
    "a node that nobody reaches": (finding(code="NC001", kind="look"), ("drain", ("n1",), 0.9)),
    "a drained node's fault that is none of its hardware": (finding(), ("fix-first", BOTH, 0.9)),
    "what follows from another finding": (finding(RESET, see=("NC802",)), ("look", (), 0.0)),
    "what is ignored": (finding(RESET, ignored=True, severity=Severity.INFO), ("look", (), 0.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_what_is_known_of_a_finding_decides_its_step(name: str) -> None:
    given, (action, nodes, confidence) = STEPS[name]
    assert report(given).findings[0].next == NextStep(Action(action), nodes, confidence)


@pytest.mark.parametrize(("given", "step"), [
    (finding(code="NC522", kind="look", hardware=True, severity=Severity.WARNING), ("ticket", BOTH, 0.7)),
    (finding(code="NC316", kind="look"), ("fix-first", BOTH, 0.9)),
    (finding(code="NC316", kind="look", severity=Severity.WARNING), ("look", BOTH, 0.5)),  # a job may live with it
    (finding(code="NC606", kind="look"), ("fix-first", BOTH, 0.9)),  # it blocks every plan
    (finding(code="NC522", kind="look", hardware=True, see=("NC801",)), ("look", (), 0.0)),
    (finding(RESET, code="NC522", hardware=True), ("reset-gpu", BOTH, 0.9)),
    (finding(code="NC801", kind="look", hardware=True, severity=Severity.WARNING), ("look", BOTH, 0.5)),
])  # fmt: skip
def test_where_a_command_only_shows_the_check_may_know_the_step(
    given: Finding, step: tuple[str, object, float]
) -> None:
    checks = [gpu_memory_worn, job_port_taken, temporary_folder_full, node_not_reached]
    (found,) = with_next_steps(replace(no_report(""), findings=(given,)), checks)
    assert (found.next.action.value, found.next.nodes, found.next.confidence) == step


def test_a_node_is_drained_by_a_step_only_where_the_scheduler_is_told_to() -> None:
    told = report(*(one for one, _ in STEPS.values() if one.code != "NC001"))
    steps = [(one.code, node) for one in told.findings if one.next.action is Action.DRAIN for node in one.next.nodes]
    assert set(steps) == {(code, node) for node, codes in codes_of(told).items() for code in codes}


@pytest.mark.parametrize("kind", ["console", "verbose", "markdown", "html", "json"])
def test_the_step_is_one_line_in_every_report_unless_the_fix_says_it(kind: str) -> None:
    drained, mended = finding(hardware=True, nodes=("n1",)), finding(code="NC803", nodes=("n2",))
    steps = [next_of(one) for one in fold_findings(report(drained, mended).findings)]
    assert steps == ["next: drain n1 (90% sure)", ""]
    stream = io.StringIO()
    show(report(drained, mended), kind, stream, {})
    wanted = '"next": {"action": "drain", "nodes": ["n1"], "confidence": 0.9}' if kind == "json" else steps[0]
    assert (stream.getvalue().count(wanted), stream.getvalue().count("next: ")) == (1, int(kind != "json"))


def test_findings_that_differ_by_node_alone_are_folded_with_all_nodes_of_their_steps() -> None:
    (one,) = fold_findings(report(finding(REBOOT, nodes=("n1",)), finding(REBOOT, nodes=("n2",))).findings)
    assert next_of(one) == "next: reboot n[1-2] (90% sure)"
