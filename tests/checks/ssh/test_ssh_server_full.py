"""NC136: a warning on the nodes whose SSH server dropped every connection, and no verdict on what is behind it."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.ssh_server_full import ssh_server_full

DROPPED = Login(
    reached=False, cause=Cause.OVERLOADED, detail="dropped 5 times", fix="sudo journalctl", transport="openssh"
)


def test_a_server_that_drops_every_connection_is_named() -> None:
    judgement = judge([ssh_server_full], {"a": {LoginFacts: LoginFacts(DROPPED)}})
    message = "its SSH server drops new connections before the login"
    assert judgement.findings == [
        Finding("NC136", "ssh-server-full", Severity.WARNING, ("a",), message, ("dropped 5 times",), "sudo journalctl",
                kind="look")
    ]  # fmt: skip


def test_a_login_that_got_further_passed_and_one_that_did_not_is_unknown() -> None:
    nodes: dict[str, Facts] = {
        "reached": {LoginFacts: LoginFacts(Login(reached=True, transport="openssh"))},
        "refused": {LoginFacts: LoginFacts(replace(DROPPED, cause=Cause.AUTH_REFUSED))},
        "down": {LoginFacts: LoginFacts(replace(DROPPED, cause=Cause.FILTERED))},
        "local": {LoginFacts: LoginFacts(Login(reached=True, transport="local"))},
    }
    judgement = judge([ssh_server_full], nodes)
    assert judgement.findings == []
    assert [(verdict.nodes[0], verdict.outcome, verdict.reason) for verdict in judgement.verdicts] == [
        ("reached", Outcome.PASSED, ""),
        ("refused", Outcome.PASSED, ""),
        ("down", Outcome.UNKNOWN, "not reached (filtered)"),
        ("local", Outcome.SKIPPED, "no SSH is used"),
    ]
