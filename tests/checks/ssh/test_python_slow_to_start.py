"""NC138: a python3 that needs seconds to start is information, and no fault."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.python_slow_to_start import python_slow_to_start


def node(seconds: float, login: Login | None = None) -> Facts:
    return {LoginFacts: LoginFacts(login or Login(reached=True), python_seconds=seconds)}


def test_a_slow_python_is_named_with_its_time() -> None:
    assert judge([python_slow_to_start], {"n1": node(0.1), "n2": node(8.04)}).findings == [
        Finding("NC138", "python-slow-to-start", Severity.INFO, ("n2",), "python3 is slow to start",
                ("python3 needed 8.0 s to start on n2",), "timeout 60 python3 -X importtime -c pass", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_about_a_second_or_two_and_where_no_python_was_started() -> None:
    judgement = judge([python_slow_to_start], {"n1": node(0.0), "n2": node(2.9)})
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED]


def test_it_is_unknown_on_a_node_that_was_not_reached() -> None:
    nodes = {"n1": node(0.0, Login(reached=False, cause=Cause.REFUSED))}
    assert [verdict.reason for verdict in judge([python_slow_to_start], nodes).verdicts] == ["not reached (refused)"]
