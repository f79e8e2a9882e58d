"""NC112: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.connection_filtered import connection_filtered

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "no answer on port 22"
    only_its_cause_is_red(judge, connection_filtered, "NC112", Cause.FILTERED, message, where="here", kind="look")
