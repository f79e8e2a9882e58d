"""NC128: red on the nodes whose login ended by its cause, silent where the login got past that."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.login import LoginFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck_checks.ssh.node_floods_output import node_floods_output

LOGIN = Login(
    reached=False, cause=Cause.FLOODED, detail="as it was heard", port=22, address="10.1.0.7", user="ann", fix="ssh a"
)


def test_a_node_whose_login_ended_so_is_red_with_what_was_heard_and_the_line_for_this_node() -> None:
    judgement = judge([node_floods_output], {"a": {LoginFacts: LoginFacts(LOGIN)}})
    assert judgement.findings == [
        Finding(
            "NC128",
            "node-floods-output",
            Severity.ERROR,
            ("a",),
            "it sent more output than any answer can have",
            ("as it was heard",),
            "ssh a",
        ),
    ]


def test_where_the_transport_knew_no_line_it_goes_in_as_the_run_did() -> None:
    nodes: dict[str, Facts] = {
        "a": {LoginFacts: LoginFacts(replace(LOGIN, fix=""))},
        "b": {LoginFacts: LoginFacts(replace(LOGIN, fix="", port=10001, user="$(id)"))},
    }
    typed = [finding.fix for finding in judge([node_floods_output], nodes).findings]
    assert typed == ["ssh ann@a true | head -c 300", "ssh -p 10001 '$(id)'@b true | head -c 300"]


def test_a_node_that_was_reached_is_green() -> None:
    judgement = judge([node_floods_output], {"a": {LoginFacts: LoginFacts(Login(reached=True))}})
    assert judgement.verdicts == [Verdict("node-floods-output", "NC128", "a", Outcome.PASSED)]
    assert judgement.findings == []


def test_a_login_that_ended_otherwise_at_that_step_or_before_is_unknown_and_not_red() -> None:
    login = Login(reached=False, cause=Cause.TRANSPORT, detail="ulimit")
    judgement = judge([node_floods_output], {"a": {LoginFacts: LoginFacts(login)}})
    unknown = Verdict("node-floods-output", "NC128", "a", Outcome.UNKNOWN, "not reached (transport)")
    assert judgement.verdicts == [unknown]
    assert judgement.findings == []
