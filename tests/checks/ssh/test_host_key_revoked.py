"""NC119: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.host_key_revoked import host_key_revoked

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "its host key is revoked: create new keys on the node's console, then let this machine learn them"
    only_its_cause_is_red(judge, host_key_revoked, "NC119", Cause.HOST_KEY_REVOKED, message)
