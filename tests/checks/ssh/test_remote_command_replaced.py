"""NC129: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.remote_command_replaced import remote_command_replaced

from .login_cause import only_its_cause_is_red, own_lines


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "it accepts the login but does not run the command"
    check, cause = remote_command_replaced, Cause.COMMAND_REPLACED
    only_its_cause_is_red(judge, check, "NC129", cause, message, where="here", kind="look")


def test_where_the_transport_knew_no_line_it_goes_in_as_the_run_did() -> None:
    lines = own_lines(judge, remote_command_replaced, Cause.COMMAND_REPLACED)
    assert lines == ["ssh ann@a echo works", "ssh -p 10001 '$(id)'@b echo works"]
