"""NC113: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.host_unroutable import host_unroutable

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "there is no route to it"
    only_its_cause_is_red(judge, host_unroutable, "NC113", Cause.UNROUTABLE, message, where="here", kind="look")
