"""NC622: a node that something keeps busy, beside nodes that are idle."""

from __future__ import annotations

from ncheck.facts.host_load import HostLoadFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.node_busy import FIX, node_busy


def nodes(*loads: float | None, cpus: int = 96) -> dict[str, Facts]:
    return {f"n{at}": {HostLoadFacts: HostLoadFacts(cpus, load=load)} for at, load in enumerate(loads)}


def test_the_busy_node_is_named_with_what_shows_why() -> None:
    assert judge([node_busy], nodes(1.0, 80.0, 2.0)).findings == [
        Finding("NC622", "node-busy", Severity.WARNING, ("n1",),
                "the load of n1 is 80 on 96 CPUs (83%; 2% on other nodes)", (), FIX, kind="look",
                summary="a node is busy before the job starts"),
    ]  # fmt: skip


def test_of_two_nodes_the_busy_one_is_named() -> None:
    assert [one.nodes for one in judge([node_busy], nodes(90.0, 0.5)).findings] == [("n0",)]


def test_nodes_that_are_all_busy_all_idle_or_alone_are_no_news() -> None:
    for cluster in (nodes(90, 95, 80), nodes(0.1, 30.0, 0.2), nodes(0.0, 0.0)):
        assert {one.outcome for one in judge([node_busy], cluster).verdicts} == {Outcome.PASSED}
    assert {one.outcome for one in judge([node_busy], nodes(90)).verdicts} == {Outcome.SKIPPED}
    assert [one.outcome for one in judge([node_busy], nodes(1.0, None)).verdicts] == [Outcome.PASSED, Outcome.SKIPPED]
    assert judge([node_busy], nodes(90, 0.1, cpus=0)).findings == []
