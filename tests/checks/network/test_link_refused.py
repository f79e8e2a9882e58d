"""NC310: connections between nodes are refused, and no other subnet carries."""

from __future__ import annotations

from ncheck.facts.links import LinkCause, LinkFacts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.link_refused import link_refused

from .linked import ALL, both, cluster, ways

REFUSED = LinkCause.REFUSED


def test_a_node_that_refuses_everybody_is_named_with_the_line_that_shows_its_firewall() -> None:
    assert judge([link_refused], cluster({1: ways(ALL, [3], REFUSED)})).findings == [
        Finding("NC310", "link-refused", Severity.ERROR, ("n3",),
                "n3 cannot be reached on 10.1.0.0/24 by any node: refused; "
                "no other subnet is known to connect all nodes, so a job hangs at its start",
                ("n1 10.1.0.1 to n3 10.1.0.3: refused (seen by hand)",
                 "n2 10.1.0.2 to n3 10.1.0.3: refused (seen by hand)",
                 "n4 10.1.0.4 to n3 10.1.0.3: refused (seen by hand)"),
                "sudo nft list ruleset", where="n3", kind="look"),
    ]  # fmt: skip


def test_the_others_pass_and_of_two_nodes_both_are_named() -> None:
    outcomes = [verdict.outcome for verdict in judge([link_refused], cluster({1: ways(ALL, [3], REFUSED)})).verdicts]
    assert outcomes == [Outcome.PASSED, Outcome.PASSED, Outcome.FAILED, Outcome.PASSED]
    two = judge([link_refused], cluster({1: both([1], [2], REFUSED)}, count=2))
    assert [finding.nodes for finding in two.findings] == [("n1", "n2")]


def test_a_hundred_links_are_one_finding_with_a_few_of_them_shown() -> None:
    (finding,) = judge([link_refused], cluster({1: ways(range(1, 101), [7], REFUSED)}, count=100)).findings
    assert finding.nodes == ("n7",)
    assert (len(finding.evidence), finding.evidence[-1]) == (9, "and 91 more")


def test_it_is_silent_where_all_nodes_reach_each_other() -> None:
    assert judge([link_refused], cluster({1: {}, 2: {}})).findings == []


def test_it_is_silent_where_another_subnet_carries_all_nodes() -> None:
    verdicts = judge([link_refused], cluster({1: {}, 2: ways(ALL, [3], REFUSED)})).verdicts
    assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}


def test_a_node_whose_links_could_not_be_read_is_unknown_and_never_blamed() -> None:
    nodes = cluster({1: ways(ALL, [3], REFUSED)})
    nodes["n3"] = {**nodes["n3"], LinkFacts: Unread("the connection was lost")}
    judgement = judge([link_refused], nodes)
    assert judgement.findings == []
    assert judgement.verdicts[2].outcome is Outcome.UNKNOWN


def test_it_is_skipped_where_nobody_was_asked() -> None:
    nodes = {name: {**facts, LinkFacts: Absent("--mesh none")} for name, facts in cluster({1: {}}).items()}
    assert {verdict.outcome for verdict in judge([link_refused], nodes).verdicts} == {Outcome.SKIPPED}
