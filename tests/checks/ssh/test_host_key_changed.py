"""NC118: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.host_key_changed import host_key_changed

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "its host key differs from the one in known_hosts: it was reinstalled, or another machine answers"
    only_its_cause_is_red(judge, host_key_changed, "NC118", Cause.HOST_KEY_CHANGED, message, kind="look")
