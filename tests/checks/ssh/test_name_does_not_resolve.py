"""NC110: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.facts.login import ListingFacts, LoginFacts
from ncheck.model.evidence import Cause, Login
from ncheck.steps.judge import judge
from ncheck_checks.ssh.name_does_not_resolve import name_does_not_resolve

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "its name does not resolve on this machine"
    only_its_cause_is_red(judge, name_does_not_resolve, "NC110", Cause.NAME_UNKNOWN, message, where="here", kind="look")


def test_the_line_of_the_list_is_in_the_evidence() -> None:
    login = Login(reached=False, cause=Cause.NAME_UNKNOWN, detail="the name no does not resolve")
    facts = {LoginFacts: LoginFacts(login), ListingFacts: ListingFacts(("nodes.txt:3", "nodes.txt:7"))}
    (finding,) = judge([name_does_not_resolve], {"no": facts}).findings
    assert finding.evidence == ("nodes.txt:3: the name no does not resolve",)
