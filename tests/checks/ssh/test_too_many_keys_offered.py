"""NC121: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.too_many_keys_offered import too_many_keys_offered

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "it closed the connection after too many keys"
    only_its_cause_is_red(judge, too_many_keys_offered, "NC121", Cause.TOO_MANY_KEYS, message, where="here")
