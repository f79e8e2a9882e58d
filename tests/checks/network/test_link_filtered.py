"""NC311: packets between nodes vanish, and no other subnet carries."""

from __future__ import annotations

from ncheck.facts.links import LinkCause
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.link_filtered import link_filtered

from .linked import ALL, both, cluster, ways


def test_two_nodes_that_get_no_answer_from_each_other_are_both_named() -> None:
    assert judge([link_filtered], cluster({1: both([2], [4])})).findings == [
        Finding("NC311", "link-filtered", Severity.ERROR, ("n2", "n4"),
                "n2 and n4 cannot reach each other on 10.1.0.0/24: no answer; "
                "no other subnet is known to connect all nodes, so a job hangs at its start",
                ("n2 10.1.0.2 to n4 10.1.0.4: filtered (seen by hand)",
                 "n4 10.1.0.4 to n2 10.1.0.2: filtered (seen by hand)"),
                "ip route get 10.1.0.2; ip route get 10.1.0.4; sudo nft list ruleset", kind="look"),
    ]  # fmt: skip


def test_two_subnets_with_a_hole_each_are_two_findings() -> None:
    found = judge([link_filtered], cluster({1: both([1], [2]), 2: ways(ALL, [4])})).findings
    assert [finding.nodes for finding in found] == [("n1", "n2"), ("n4",)]


def test_links_that_were_not_tried_are_unknown_on_the_node_that_did_not() -> None:
    judgement = judge([link_filtered], cluster({1: {(2, 3): LinkCause.UNTRIED}}))
    assert judgement.findings == []
    assert [(verdict.outcome, verdict.reason) for verdict in judgement.verdicts] == [
        (Outcome.PASSED, ""),
        (Outcome.UNKNOWN, "not all links between n[2-3] were tested on 10.1.0.0/24"),
        (Outcome.PASSED, ""),
        (Outcome.PASSED, ""),
    ]


def test_it_is_silent_where_links_fail_in_another_way() -> None:
    verdicts = judge([link_filtered], cluster({1: ways(ALL, [3], LinkCause.REFUSED)})).verdicts
    assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}
