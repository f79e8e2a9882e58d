"""NC137: a warning on the nodes that are logged in to although their host key changed, and on no others."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.host_key_change_ignored import host_key_change_ignored

REACHED = Login(reached=True, transport="paramiko", port=22)
WARNED = replace(REACHED, host_key_warning="the host key of a changed")


def test_a_changed_key_that_is_ignored_is_a_warning() -> None:
    nodes: dict[str, Facts] = {
        "a": {LoginFacts: LoginFacts(WARNED)},
        "b": {LoginFacts: LoginFacts(replace(WARNED, port=10001))},
    }
    message = "its host key is not the one in known_hosts, and StrictHostKeyChecking no ignores that"
    evidence = ("the host key of a changed",)
    assert judge([host_key_change_ignored], nodes).findings == [
        Finding("NC137", "host-key-change-ignored", Severity.WARNING, ("a",), message, evidence,
                "cat /etc/ssh/ssh_host_*_key.pub | ssh-keygen -lf -", kind="look"),
        Finding("NC137", "host-key-change-ignored", Severity.WARNING, ("b",), message, evidence,
                "cat /etc/ssh/ssh_host_*_key.pub | ssh-keygen -lf -", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_the_key_is_the_known_one_and_unknown_where_none_was_seen() -> None:
    nodes: dict[str, Facts] = {
        "well": {LoginFacts: LoginFacts(REACHED)},
        "refused": {LoginFacts: LoginFacts(replace(REACHED, reached=False, cause=Cause.AUTH_REFUSED))},
        "down": {LoginFacts: LoginFacts(replace(REACHED, reached=False, cause=Cause.REFUSED))},
        "local": {LoginFacts: LoginFacts(replace(REACHED, transport="local"))},
    }
    judgement = judge([host_key_change_ignored], nodes)
    assert judgement.findings == []
    assert [verdict.outcome for verdict in judgement.verdicts] == [
        Outcome.PASSED, Outcome.PASSED, Outcome.UNKNOWN, Outcome.SKIPPED
    ]  # fmt: skip
