"""NC130: start-up files that print are a warning, never an error."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.steps.judge import judge
from ncheck_checks.ssh.start_up_files_print import start_up_files_print


def test_what_start_up_files_print_is_shown() -> None:
    facts = LoginFacts(Login(reached=True), "Welcome to node07\nLoading modules")
    judgement = judge([start_up_files_print], {"a": {LoginFacts: facts}})
    assert judgement.findings == [
        Finding(
            "NC130",
            "start-up-files-print",
            Severity.WARNING,
            ("a",),
            "start-up files print text in non-interactive logins",
            ("Welcome to node07", "Loading modules"),
            "ssh a true",
            where="here",
            kind="look",
            summary="start-up files print text",
        ),
    ]


def test_a_quiet_login_is_green() -> None:
    judgement = judge([start_up_files_print], {"a": {LoginFacts: LoginFacts(Login(reached=True))}})
    assert judgement.verdicts == [Verdict("start-up-files-print", "NC130", ("a",), Outcome.PASSED)]


def test_a_node_that_was_not_reached_is_unknown() -> None:
    login = Login(reached=False, cause=Cause.REFUSED)
    judgement = judge([start_up_files_print], {"a": {LoginFacts: LoginFacts(login)}})
    reason = "not reached (refused)"
    assert judgement.verdicts == [Verdict("start-up-files-print", "NC130", ("a",), Outcome.UNKNOWN, reason)]
