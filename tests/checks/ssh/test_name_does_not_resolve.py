"""NC110: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.judge import judge
from ncheck.model.evidence import Cause
from ncheck_checks.ssh.name_does_not_resolve import name_does_not_resolve

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "its name does not resolve on this machine"
    only_its_cause_is_red(judge, name_does_not_resolve, "NC110", Cause.NAME_UNKNOWN, message, where="here", kind="look")
