"""NC128: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from ncheck.model.evidence import Cause
from ncheck.steps.judge import judge
from ncheck_checks.ssh.node_floods_output import node_floods_output

from .login_cause import only_its_cause_is_red, own_lines


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "it sent more output than any answer can have"
    only_its_cause_is_red(judge, node_floods_output, "NC128", Cause.FLOODED, message, where="here", kind="look")


def test_where_the_transport_knew_no_line_it_goes_in_as_the_run_did() -> None:
    lines = own_lines(judge, node_floods_output, Cause.FLOODED)
    assert lines == ["ssh ann@a true 2>&1 | head -c 300", "ssh -p 10001 '$(id)'@b true 2>&1 | head -c 300"]
