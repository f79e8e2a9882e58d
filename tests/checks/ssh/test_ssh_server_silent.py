"""NC115: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.ssh_server_silent import ssh_server_silent

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "its SSH server accepts connections but does not answer: restart it on the node's console"
    only_its_cause_is_red(judge, ssh_server_silent, "NC115", Cause.SILENT, message)
