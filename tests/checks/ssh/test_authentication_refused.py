"""NC120: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.judge import judge
from ncheck.model.evidence import Cause
from ncheck_checks.ssh.authentication_refused import authentication_refused

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "ann refused: no key was accepted"
    only_its_cause_is_red(judge, authentication_refused, "NC120", Cause.AUTH_REFUSED, message)
