"""NC111: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.judge import judge
from ncheck.model.evidence import Cause
from ncheck_checks.ssh.connection_refused import connection_refused

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "nothing listens on port 22: start ssh on the node's console"
    only_its_cause_is_red(judge, connection_refused, "NC111", Cause.REFUSED, message)
