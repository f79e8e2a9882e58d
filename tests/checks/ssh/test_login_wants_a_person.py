"""NC122: red on the nodes whose login ended by its cause, silent where the login got past that."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.judge import judge
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck_checks.ssh.login_wants_a_person import login_wants_a_person

LOGIN = Login(
    reached=False,
    cause=Cause.PERSON_WANTED,
    detail="as it was heard",
    port=22,
    address="10.1.0.7",
    user="ann",
    fix="ssh a",
)


def test_a_node_whose_login_ended_so_is_red_with_what_was_heard_and_the_line_for_this_node() -> None:
    judgement = judge([login_wants_a_person], {"a": {LoginFacts: LoginFacts(LOGIN)}})
    assert judgement.findings == [
        Finding(
            "NC122",
            "login-wants-a-person",
            Severity.ERROR,
            ("a",),
            "it requires more than a key: a password, a code, or a new password",
            ("as it was heard",),
            "ssh a",
        ),
    ]


def test_a_node_that_was_reached_is_green() -> None:
    judgement = judge([login_wants_a_person], {"a": {LoginFacts: LoginFacts(Login(reached=True))}})
    assert judgement.verdicts == [Verdict("login-wants-a-person", "NC122", "a", Outcome.PASSED)]
    assert judgement.findings == []


def test_a_login_that_ended_otherwise_at_that_step_or_before_is_unknown_and_not_red() -> None:
    login = Login(reached=False, cause=Cause.TRANSPORT, detail="ulimit")
    judgement = judge([login_wants_a_person], {"a": {LoginFacts: LoginFacts(login)}})
    unknown = Verdict("login-wants-a-person", "NC122", "a", Outcome.UNKNOWN, "not reached (transport)")
    assert judgement.verdicts == [unknown]
    assert judgement.findings == []
