"""NC313: nodes connect in one direction only, and no other subnet connects all nodes."""

from __future__ import annotations

from ncheck.facts.links import LinkCause
from ncheck.model.finding import Outcome
from ncheck.steps.judge import judge
from ncheck_checks.network.link_one_way import link_one_way

from .linked import ALL, both, cluster, ways


def test_the_direction_is_reported_and_the_look_is_at_the_routes_and_firewalls_of_both() -> None:
    (finding,) = judge([link_one_way], cluster({1: ways([4], [2])})).findings
    assert finding.nodes == ("n2", "n4")
    assert finding.message == (
        "n2 reaches n4 on 10.1.0.0/24, but n4 does not reach n2: no answer; "
        "no other subnet is known to connect all nodes, so a job hangs at its start"
    )
    look = "ip route get 10.1.0.4; ip route get 10.1.0.2; sudo nft list ruleset"
    assert (finding.where, finding.fix, finding.kind) == ("", look, "look")


def test_a_one_way_link_is_reported_whatever_error_the_node_sees() -> None:
    found = judge([link_one_way], cluster({1: ways([4], [2], LinkCause.REFUSED)})).findings
    assert [finding.message.partition(";")[0] for finding in found] == [
        "n2 reaches n4 on 10.1.0.0/24, but n4 does not reach n2: refused"
    ]


def test_it_is_silent_where_a_link_fails_both_ways_or_a_node_is_reached_by_nobody() -> None:
    for broken in (both([4], [2]), ways(ALL, [2])):
        verdicts = judge([link_one_way], cluster({1: broken})).verdicts
        assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}
