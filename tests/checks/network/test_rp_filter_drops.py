"""NC352: the kernel says that it would drop what another node sends."""

from __future__ import annotations

from ncheck.facts.arrivals import Arrival, ArrivalFacts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.rp_filter_drops import rp_filter_drops

GOOD = Arrival("eth0", "10.1.0.5", "10.1.0.9", taken=True)
BAD = Arrival("eth1", "10.1.0.6", "10.1.0.9", taken=False)


def outcome(fact: object) -> Outcome:
    return judge([rp_filter_drops], {"n1": {ArrivalFacts: fact}}).verdicts[0].outcome


def test_a_packet_that_would_be_dropped_is_reported_with_its_interface() -> None:
    assert judge([rp_filter_drops], {"n1": {ArrivalFacts: ArrivalFacts((GOOD, BAD))}}).findings == [
        Finding("NC352", "rp-filter-drops", Severity.WARNING, ("n1",),
                "packets from other nodes to eth1 are dropped: "
                "rp_filter is 1 and the route back uses another interface",
                ("from 10.1.0.9 to 10.1.0.6 by eth1: dropped",), "sudo sysctl -w net.ipv4.conf.all.rp_filter=2"),
    ]  # fmt: skip


def test_it_is_silent_where_all_would_be_taken() -> None:
    assert outcome(ArrivalFacts((GOOD,))) is Outcome.PASSED


def test_a_node_with_nothing_to_ask_is_skipped_and_one_that_did_not_answer_is_unknown() -> None:
    assert outcome(Absent("one interface")) is Outcome.SKIPPED
    assert outcome(Unread("no answer")) is Outcome.UNKNOWN
