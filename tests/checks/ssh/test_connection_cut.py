"""NC127: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.connection_cut import connection_cut

from .login_cause import only_its_cause_is_red, own_lines


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "it stopped answering during the run"
    only_its_cause_is_red(judge, connection_cut, "NC127", Cause.CLOSED, message, where="here", kind="look")


def test_where_the_transport_knew_no_line_it_goes_in_as_the_run_did() -> None:
    lines = own_lines(judge, connection_cut, Cause.CLOSED)
    assert lines == ["ssh ann@a uptime", "ssh -p 10001 '$(id)'@b uptime"]
