"""NC317: a launcher's default port, which nobody named, is taken on the first node."""

from __future__ import annotations

from ncheck.facts.links import PortState
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.default_port_taken import default_port_taken

from .linked import Dialler


def node(*ports: PortState) -> dict[str, Facts]:
    return {"n1": Dialler(1, 1, {1: {}}, ports=ports).facts()}


def test_it_is_a_warning_with_another_port_to_plan_with() -> None:
    state = PortState(29500, free=False, taken_by="a program of ada", assumed=True)
    assert judge([default_port_taken], node(state)).findings == [
        Finding("NC317", "default-port-taken", Severity.WARNING, ("n1",),
                "port 29500 (a launcher's default) is taken by a program of ada", (),
                "ncheck plan nodes.txt --master-port 29501", where="here", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_the_port_is_free_or_somebody_named_it() -> None:
    states = (PortState(29500, free=True, assumed=True), PortState(10001, free=False))
    assert {verdict.outcome for verdict in judge([default_port_taken], node(*states)).verdicts} == {Outcome.PASSED}
