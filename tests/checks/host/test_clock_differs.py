"""NC601: a clock that is over a second off is named, and a slow network is not taken for one."""

from __future__ import annotations

from ncheck.facts.clock import ClockFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.clock_differs import clock_differs


def node(offset: float, uncertainty: float = 0.0) -> Facts:
    return {ClockFacts: ClockFacts(offset, uncertainty)}


def test_the_odd_clock_is_named_with_how_far_it_is_off() -> None:
    judgement = judge([clock_differs], {"n1": node(0.01), "n2": node(0.0), "n3": node(-2.5)})
    assert judgement.findings == [
        Finding("NC601", "clock-differs", Severity.WARNING, ("n3",),
                "the clock of n3 differs from the other clocks by more than a second",
                ("n3: 2.5 s behind",), "sudo timedatectl set-ntp true",
                summary="the clock differs from the other clocks by more than a second"),
    ]  # fmt: skip
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED, Outcome.FAILED]


def test_clocks_within_a_second_are_no_finding() -> None:
    assert judge([clock_differs], {"n1": node(0.4), "n2": node(-0.4), "n3": node(0.0)}).findings == []


def test_a_clock_that_is_a_minute_off_is_left_to_its_own_check() -> None:
    assert judge([clock_differs], {"n1": node(0.0), "n2": node(0.0), "n3": node(3600.0)}).findings == []


def test_a_round_trip_of_seconds_is_no_finding() -> None:
    assert judge([clock_differs], {"n1": node(3.0, uncertainty=2.5), "n2": node(0.0)}).findings == []


def test_a_clock_that_was_not_read_is_unknown() -> None:
    unread: Facts = {ClockFacts: Unread("no ping was answered")}
    judgement = judge([clock_differs], {"n1": unread, "n2": node(0.0), "n3": node(0.0)})
    assert [one.outcome for one in judgement.verdicts] == [Outcome.UNKNOWN, Outcome.PASSED, Outcome.PASSED]
