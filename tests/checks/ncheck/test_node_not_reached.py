"""NC001: a node is red when no shell answered there, and unknown when our side failed."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.steps.judge import judge
from ncheck_checks.ncheck.node_not_reached import node_not_reached

REFUSED = Login(reached=False, cause=Cause.REFUSED, detail="connect to 10.1.0.7 port 22: Connection refused")
DROPPED = Login(reached=False, cause=Cause.OVERLOADED, detail="dropped 5 times before the banner")


def test_a_node_that_was_not_reached_fails_with_its_cause() -> None:
    judgement = judge([node_not_reached], {"a": {LoginFacts: LoginFacts(REFUSED)}})
    assert judgement.findings == [
        Finding("NC001", "node-not-reached", Severity.ERROR, ("a",), "unreachable: refused",
                ("connect to 10.1.0.7 port 22: Connection refused",), "ssh -v a true", where="here", kind="look"),
    ]  # fmt: skip


def test_a_node_that_our_side_could_not_reach_is_unknown_and_not_blamed() -> None:
    judgement = judge([node_not_reached], {"a": {LoginFacts: LoginFacts(DROPPED)}})
    reason = "unreachable, but the node is not at fault (overloaded): dropped 5 times before the banner"
    assert judgement.verdicts == [Verdict("node-not-reached", "NC001", ("a",), Outcome.UNKNOWN, reason)]
    assert judgement.findings == []


def test_a_node_that_was_never_tried_is_not_called_unreachable() -> None:
    late = Login(reached=False, cause=Cause.NOT_TRIED, detail="not tried: the run's deadline passed")
    judgement = judge([node_not_reached], {"a": {LoginFacts: LoginFacts(late)}})
    assert judgement.verdicts == [Verdict("node-not-reached", "NC001", ("a",), Outcome.UNKNOWN, late.detail)]


def test_it_is_silent_on_a_reached_node_even_without_python() -> None:
    logins = (Login(reached=True), Login(reached=True, cause=Cause.NO_PYTHON, detail="no python3"))
    nodes: dict[str, Facts] = {str(number): {LoginFacts: LoginFacts(login)} for number, login in enumerate(logins)}
    assert [verdict.outcome for verdict in judge([node_not_reached], nodes).verdicts] == [Outcome.PASSED] * 2
