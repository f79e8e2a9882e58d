"""NC312: nodes have no route to each other, and no other subnet connects all nodes."""

from __future__ import annotations

from ncheck.facts.links import LinkCause
from ncheck.model.finding import Outcome
from ncheck.steps.judge import judge
from ncheck_checks.network.link_unroutable import link_unroutable

from .linked import ALL, both, cluster, ways

UNROUTABLE = LinkCause.UNROUTABLE


def test_a_node_without_a_link_to_the_others_is_named_with_the_route_to_inspect() -> None:
    (finding,) = judge([link_unroutable], cluster({1: both([2], ALL, UNROUTABLE)})).findings
    assert finding.nodes == ("n2",)
    assert finding.message == (
        "n2 cannot reach any node on 10.1.0.0/24, and no node can reach it: no route; "
        "no other subnet is known to connect all nodes, so a job hangs at its start"
    )
    assert (finding.where, finding.fix) == ("n2", "ip route get 10.1.0.1 from 10.1.0.2")


def test_a_subnet_that_leads_nowhere_and_is_the_only_one_names_all_nodes_once() -> None:
    (finding,) = judge([link_unroutable], cluster({1: ways(ALL, ALL, UNROUTABLE)})).findings
    assert finding.nodes == ("n1", "n2", "n3", "n4")
    assert finding.message.startswith("no node reaches another one on 10.1.0.0/24: no route; ")


def test_it_is_silent_where_the_subnet_that_leads_nowhere_is_a_second_one() -> None:
    verdicts = judge([link_unroutable], cluster({1: {}, 2: ways(ALL, ALL, UNROUTABLE)})).verdicts
    assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}
