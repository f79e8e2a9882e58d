"""NC713: over sockets it takes half of the speed, and two partners; a busy machine is no bad node."""

from __future__ import annotations

from ncheck.model.finding import Outcome, Severity
from ncheck.probe.node_result import Method
from ncheck.steps.judge import judge
from ncheck_checks.measured.node_slow_on_cpus import node_slow_on_cpus

from .test_node_slow import cluster


def test_a_third_of_the_speed_with_two_partners_and_once_more_alone_is_a_warning() -> None:
    for method in (Method.TCP, Method.GLOO):
        found = judge([node_slow_on_cpus], cluster(4, {"n2": 0.3}, method, again=[("n2", "n4", 9)])).findings
        assert [(one.nodes, one.severity) for one in found] == [(("n2",), Severity.WARNING)]


def test_it_is_silent_where_a_busy_machine_may_be_the_reason_because_nothing_was_measured_once_more() -> None:
    for method in (Method.TCP, Method.GLOO):
        judgement = judge([node_slow_on_cpus], cluster(4, {"n2": 0.3}, method))
        outcomes = {name: verdict.outcome for verdict in judgement.verdicts for name in verdict.nodes}
        assert (judgement.findings, outcomes.pop("n2")) == ([], Outcome.SKIPPED)
        assert [*outcomes.values()] == [Outcome.PASSED] * 3


def test_it_is_silent_about_a_node_that_is_merely_busy() -> None:
    for method in (Method.TCP, Method.GLOO):
        judgement = judge([node_slow_on_cpus], cluster(4, {"n2": 0.6}, method))
        assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED] * 4


def test_it_leaves_what_was_measured_on_gpus_to_another_check() -> None:
    judgement = judge([node_slow_on_cpus], cluster(4, {"n2": 0.3}))
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED] * 4
