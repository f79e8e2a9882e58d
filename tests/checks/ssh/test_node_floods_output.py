"""NC128: red on the nodes whose login ended by its cause, silent where the login got past that."""

from __future__ import annotations

from checks.ssh.node_floods_output import node_floods_output
from doctor.engine import judge
from doctor.model.evidence import Cause, Login
from doctor.model.facts import LoginFacts
from doctor.model.finding import Finding, Outcome, Severity, Verdict

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
            "it sent more output than any answer could be",
            ("as it was heard",),
            "ssh a",
        ),
    ]


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
