"""NC120: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.judge import judge
from ncheck.model.evidence import Cause, Login
from ncheck_checks.ssh.authentication_refused import authentication_refused

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "ann refused: no key was accepted"
    only_its_cause_is_red(
        judge, authentication_refused, "NC120", Cause.AUTH_REFUSED, message, where="here", kind="look"
    )


def test_without_a_key_to_offer_one_is_to_be_named() -> None:
    login = Login(reached=False, cause=Cause.AUTH_REFUSED, port=22, user="ann")
    (finding,) = judge([authentication_refused], {"a": {LoginFacts: LoginFacts(login)}}).findings
    assert finding.message == "ann refused: no key was offered"
    assert (finding.where, finding.kind, finding.fix) == (
        "here", "do", "name a key that is in authorized_keys there, with -i"
    )  # fmt: skip
