"""NC114: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.not_an_ssh_server import not_an_ssh_server

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "the server on port 22 does not speak SSH"
    only_its_cause_is_red(judge, not_an_ssh_server, "NC114", Cause.NOT_SSH, message, where="here", kind="look")
