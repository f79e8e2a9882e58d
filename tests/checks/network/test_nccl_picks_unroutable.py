"""NC325: a node has no route to the address that NCCL picks on another."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.routes import RouteFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.nccl_picks_unroutable import nccl_picks_unroutable

from .picked import nic, node

OWN = Absent("the addresses that NCCL picks on the other nodes are in subnets of this node")


def asked(facts: Facts, told: RouteFacts | Unread | Absent = OWN) -> Facts:
    return {**facts, RouteFacts: told}


def cluster(told: RouteFacts | Unread | Absent) -> dict[str, Facts]:
    """Return two nodes that share the data subnet, of which the second picks one that the first is not in."""
    second = node(nic("ens9", 2, "10.9.0.2"), nic("eth0", 3, "10.1.0.2"))
    return {"n1": asked(node(nic("eth0", 2, "10.1.0.1")), told), "n2": asked(second)}


def outcomes(nodes: Mapping[str, Facts]) -> set[Outcome]:
    return {verdict.outcome for verdict in judge([nccl_picks_unroutable], nodes).verdicts}


def test_a_pick_without_a_route_from_another_node_is_an_error_with_the_name_of_a_shared_subnet() -> None:
    assert judge([nccl_picks_unroutable], cluster(RouteFacts({"10.9.0.2": "Network is unreachable"}))).findings == [
        Finding("NC325", "nccl-picks-unroutable", Severity.ERROR, ("n2", "n1"),
                "NCCL on n2 would listen on 10.9.0.2 (ens9): n1 has no route to it", ("n1: Network is unreachable",),
                "ncheck plan nodes.txt", where="here", summary="NCCL would pick an unroutable address"),
    ]  # fmt: skip


def test_where_no_subnet_is_common_the_route_itself_is_to_be_looked_at() -> None:
    nodes = {"n1": asked(node(nic("eth0", 2, "10.1.0.1")), RouteFacts({"10.9.0.2": "Network is unreachable"}))}
    nodes["n2"] = asked(node(nic("eth0", 2, "10.9.0.2")), RouteFacts({"10.1.0.1": ""}))
    (finding,) = judge([nccl_picks_unroutable], nodes).findings
    assert finding.fix == "ip route get 10.9.0.2"


def test_it_is_silent_where_a_router_leads_there() -> None:
    assert outcomes(cluster(RouteFacts({"10.9.0.2": ""}))) == {Outcome.PASSED}


def test_it_is_silent_where_all_picks_lie_in_own_subnets() -> None:
    nodes = {f"n{i}": asked(node(nic("eth0", 2, f"10.1.0.{i}"))) for i in (1, 2)}
    assert outcomes(nodes) == {Outcome.PASSED}


def test_a_kernel_that_could_not_be_asked_leaves_it_unknown_there() -> None:
    verdicts = judge([nccl_picks_unroutable], cluster(Unread("the agent's routes did not end"))).verdicts
    assert [(verdict.nodes[0], verdict.outcome) for verdict in verdicts] == [
        ("n1", Outcome.UNKNOWN), ("n2", Outcome.PASSED),
    ]  # fmt: skip
