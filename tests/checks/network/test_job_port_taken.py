"""NC316: a port that was named for the job is not to be had on the first node."""

from __future__ import annotations

from ncheck.facts.links import PortState
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.job_port_taken import job_port_taken

from .linked import Dialler


def node(*ports: PortState) -> dict[str, Facts]:
    return {"n1": Dialler(1, 1, {1: {}}, ports=ports).facts()}


def test_the_program_that_has_the_port_is_named_with_the_line_that_shows_what_it_is() -> None:
    state = PortState(10001, free=False, taken_by="python3 (pid 4711) of ada")
    assert judge([job_port_taken], node(state)).findings == [
        Finding("NC316", "job-port-taken", Severity.ERROR, ("n1",),
                "port 10001 is taken by python3 (pid 4711) of ada", (), "ps -o user,lstart,args -p 4711",
                where="n1", kind="look"),
    ]  # fmt: skip


def test_if_this_user_may_not_see_the_owner_the_fix_shows_it() -> None:
    (finding,) = judge([job_port_taken], node(PortState(10001, free=False))).findings
    assert finding.message == "port 10001 is taken by a program that this user may not see"
    assert finding.fix == "sudo ss -tnap 'sport = :10001'"


def test_a_port_that_may_not_be_opened_is_no_port_for_the_job() -> None:
    (finding,) = judge([job_port_taken], node(PortState(80, free=False, error="Permission denied"))).findings
    assert finding.message == "port 80 cannot be opened: Permission denied"
    assert finding.fix == "ncheck plan nodes.txt --master-port 29500"


def test_it_is_silent_where_the_port_is_free_or_nobody_named_it() -> None:
    states = (PortState(10001, free=True), PortState(29500, free=False, assumed=True))
    assert {verdict.outcome for verdict in judge([job_port_taken], node(*states)).verdicts} == {Outcome.PASSED}
