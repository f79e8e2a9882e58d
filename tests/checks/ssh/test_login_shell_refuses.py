"""NC124: red on the nodes whose login ended by its cause, silent where the login got past that."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.login import LoginFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck_checks.ssh.login_shell_refuses import login_shell_refuses

LOGIN = Login(
    reached=False, cause=Cause.NO_SHELL, detail="as it was heard", port=22, address="10.1.0.7", user="ann", fix="ssh a"
)


def test_a_node_whose_login_ended_so_is_red_with_what_was_heard_and_the_line_for_this_node() -> None:
    judgement = judge([login_shell_refuses], {"a": {LoginFacts: LoginFacts(LOGIN)}})
    assert judgement.findings == [
        Finding(
            "NC124",
            "login-shell-refuses",
            Severity.ERROR,
            ("a",),
            "it accepts the login but runs no command",
            ("as it was heard",),
            "ssh a",
        ),
    ]


def test_where_the_transport_knew_no_line_it_goes_in_as_the_run_did() -> None:
    nodes: dict[str, Facts] = {
        "a": {LoginFacts: LoginFacts(replace(LOGIN, fix=""))},
        "b": {LoginFacts: LoginFacts(replace(LOGIN, fix="", port=10001, user="$(id)"))},
    }
    typed = [finding.fix for finding in judge([login_shell_refuses], nodes).findings]
    assert typed == ["ssh ann@a true", "ssh -p 10001 '$(id)'@b true"]


def test_a_node_that_was_reached_is_green() -> None:
    judgement = judge([login_shell_refuses], {"a": {LoginFacts: LoginFacts(Login(reached=True))}})
    assert judgement.verdicts == [Verdict("login-shell-refuses", "NC124", "a", Outcome.PASSED)]
    assert judgement.findings == []


def test_a_login_that_ended_otherwise_at_that_step_or_before_is_unknown_and_not_red() -> None:
    login = Login(reached=False, cause=Cause.TRANSPORT, detail="ulimit")
    judgement = judge([login_shell_refuses], {"a": {LoginFacts: LoginFacts(login)}})
    unknown = Verdict("login-shell-refuses", "NC124", "a", Outcome.UNKNOWN, "not reached (transport)")
    assert judgement.verdicts == [unknown]
    assert judgement.findings == []
