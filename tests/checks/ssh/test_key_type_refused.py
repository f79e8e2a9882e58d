"""NC191: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.key_type_refused import key_type_refused

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "ann refused: sshd accepts no key of the types that were offered; use a key of another type"
    only_its_cause_is_red(judge, key_type_refused, "NC191", Cause.KEY_TYPE_REFUSED, message, where="here", kind="look")
