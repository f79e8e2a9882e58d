"""NC117: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.judge import judge
from ncheck.model.evidence import Cause
from ncheck_checks.ssh.host_key_unknown import host_key_unknown

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "its host key is not in known_hosts"
    only_its_cause_is_red(judge, host_key_unknown, "NC117", Cause.HOST_KEY_UNKNOWN, message, where="here")
