"""NC124: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.login_shell_refuses import login_shell_refuses

from .login_cause import only_its_cause_is_red, own_lines


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "it accepts the login but runs no command"
    only_its_cause_is_red(judge, login_shell_refuses, "NC124", Cause.NO_SHELL, message, where="here", kind="look")


def test_where_the_transport_knew_no_line_it_goes_in_as_the_run_did() -> None:
    lines = own_lines(judge, login_shell_refuses, Cause.NO_SHELL)
    assert lines == ["ssh ann@a true", "ssh -p 10001 '$(id)'@b true"]
