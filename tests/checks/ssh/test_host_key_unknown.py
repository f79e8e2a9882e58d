"""NC117: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.host_key_unknown import host_key_unknown

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "its host key is not in known_hosts"
    only_its_cause_is_red(judge, host_key_unknown, "NC117", Cause.HOST_KEY_UNKNOWN, message, where="here")


def test_fresh_containers_are_one_finding_with_one_line_for_all() -> None:
    unknown = Login(reached=False, cause=Cause.HOST_KEY_UNKNOWN, port=10001, fix="ssh a")
    nodes: dict[str, Facts] = {name: {LoginFacts: LoginFacts(unknown)} for name in ("a", "b")}
    nodes["c"] = {LoginFacts: LoginFacts(Login(reached=False, cause=Cause.HOST_KEY_UNKNOWN, port=22, detail="no"))}
    nodes["d"] = {LoginFacts: LoginFacts(Login(reached=True))}
    judgement = judge([host_key_unknown], nodes)
    message = (
        "the host keys of 3 nodes are not in known_hosts; if these nodes are fresh, add them all, by this line or with "
        "--accept-new-host-keys; else log in to each and compare its fingerprint"
    )
    line = "ssh-keyscan -p 10001 a b >> ~/.ssh/known_hosts; ssh-keyscan c >> ~/.ssh/known_hosts"
    assert judgement.findings == [
        Finding("NC117", "host-key-unknown", Severity.ERROR, ("a", "b", "c"), message, ("c: no",), line, where="here",
                summary="host keys are unknown"),
    ]  # fmt: skip
    assert [one.outcome for one in judgement.verdicts] == [*[Outcome.FAILED] * 3, Outcome.PASSED]
