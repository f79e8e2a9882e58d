"""NC116: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.ssh_login_stalls import ssh_login_stalls

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "the login stalls after the SSH banner"
    only_its_cause_is_red(judge, ssh_login_stalls, "NC116", Cause.STALLED, message, where="here", kind="look")
