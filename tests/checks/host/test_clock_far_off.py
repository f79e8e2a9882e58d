"""NC603: a clock that is over a minute off is an error; one of a few seconds is not."""

from __future__ import annotations

from ncheck.facts.clock import ClockFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.clock_far_off import clock_far_off


def node(offset: float) -> Facts:
    return {ClockFacts: ClockFacts(offset, 0.0), RanksFacts: Absent("no job")}


def test_a_clock_an_hour_off_is_an_error_on_that_node_alone() -> None:
    assert judge([clock_far_off], {"n1": node(0.0), "n2": node(3600.0), "n3": node(0.1)}).findings == [
        Finding("NC603", "clock-far-off", Severity.ERROR, ("n2",), "the clock of n2 is more than a minute off",
                ("n2: 3600.0 s ahead",), "sudo timedatectl set-ntp true",
                summary="the clock is more than a minute off"),
    ]  # fmt: skip


def test_a_few_seconds_are_no_error() -> None:
    assert judge([clock_far_off], {"n1": node(0.0), "n2": node(30.0)}).findings == []


def test_a_head_whose_own_clock_is_off_blames_no_node() -> None:
    assert judge([clock_far_off], {"n1": node(3600.0), "n2": node(3600.0)}).findings == []


def test_a_node_alone_is_compared_with_the_head() -> None:
    judgement = judge([clock_far_off], {"n1": node(3600.0)})
    assert [finding.nodes for finding in judgement.findings] == [("n1",)]


def test_inside_a_job_it_is_a_warning() -> None:
    nodes = {name: {**node(offset), RanksFacts: RanksFacts(2, (0,))} for name, offset in (("n1", 0.0), ("n2", 3600.0))}
    assert [(one.severity, one.nodes) for one in judge([clock_far_off], nodes).findings] == [
        (Severity.WARNING, ("n2",))
    ]
