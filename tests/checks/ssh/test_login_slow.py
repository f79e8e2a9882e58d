"""NC140: a node whose login is slow is named, by the step that is slow, if the others are not slow too."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.login_slow import login_slow


def node(authentication: float, shell: float) -> Facts:
    login = Login(reached=True, transport="paramiko", port=22, user="ann", authentication_seconds=authentication)
    return {LoginFacts: LoginFacts(login, shell_seconds=shell)}


def test_the_step_that_is_slow_is_named() -> None:
    nodes = {"n1": node(0.2, 0.1), "n2": node(12.34, 0.1), "n3": node(0.4, 10.0)}
    assert judge([login_slow], nodes).findings == [
        Finding("NC140", "login-slow", Severity.WARNING, ("n2",),
                "the SSH server is slow to let a login in (keys, PAM, directory service)",
                ("12.3 s from key exchange to command on n2; median of the others 0.3 s",),
                "ssh -v ann@n2 true", where="here", kind="look", summary="slow SSH login"),
        Finding("NC140", "login-slow", Severity.WARNING, ("n3",),
                "the login shell is slow to start: look at its start-up files",
                ("it needed 10.0 s on n3; median of the others 0.1 s",),
                "time bash -c '. ~/.bashrc'", kind="look", summary="slow login shell"),
    ]  # fmt: skip


def test_it_is_silent_where_all_are_slow_and_about_a_second_or_two() -> None:
    busy = {"n1": node(6.0, 7.0), "n2": node(9.0, 12.0), "n3": node(3.0, 5.5)}
    well = {"n1": node(0.02, 0.01), "n2": node(4.9, 2.0)}
    for nodes in (busy, well):
        judgement = judge([login_slow], nodes)
        assert judgement.findings == []
        assert {verdict.outcome for verdict in judgement.verdicts} == {Outcome.PASSED}


def test_what_was_not_measured_is_skipped_and_compared_with_nothing() -> None:
    lost: Facts = {LoginFacts: LoginFacts(Login(reached=False, cause=Cause.REFUSED))}
    judgement = judge([login_slow], {"n1": node(0.0, 0.0), "n2": node(30.0, 30.0), "n3": lost})
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [
        Outcome.SKIPPED, Outcome.SKIPPED, Outcome.UNKNOWN,
    ]  # fmt: skip
