"""NC320: each node's pick is a real interface, and they lie in different subnets."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.nics import Interface
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.nccl_picks_differ import nccl_picks_differ

from .picked import OLD, docker, nic, node, picks


def two_wires(number: int, *, storage_first: bool = False) -> tuple[Interface, Interface]:
    """Return a node's interface in the data subnet and the one in the storage subnet, in the kernel's order."""
    data, storage = (2, 3) if not storage_first else (3, 2)
    wires = nic("eth0", data, f"10.1.0.{number}"), nic("ens9", storage, f"10.9.0.{number}")
    return wires if not storage_first else (wires[1], wires[0])


def cluster(*odd: int, size: int = 4) -> dict[str, Facts]:
    return {f"n{i}": node(*two_wires(i, storage_first=i in odd)) for i in range(1, size + 1)}


def outcomes(nodes: dict[str, Facts]) -> set[Outcome]:
    return {verdict.outcome for verdict in judge([nccl_picks_differ], nodes).verdicts}


def test_the_node_that_picks_another_subnet_than_most_is_named_with_the_name_to_set() -> None:
    assert judge([nccl_picks_differ], cluster(3)).findings == [
        Finding("NC320", "nccl-picks-differ", Severity.WARNING, ("n3",),
                "NCCL would pick different subnets: 10.1.0.0/24 on n[1-2,4], 10.9.0.0/24 on n3 (3 to 1)",
                ("eth0 is in 10.1.0.0/24: n[1-2,4]", "ens9 is in 10.9.0.0/24: n3"),
                "ncheck plan nodes.txt", where="here", summary="NCCL would pick different subnets"),
    ]  # fmt: skip


def test_the_name_to_set_is_that_of_the_fastest_network_though_few_pick_it() -> None:
    def host(number: int, data: int, storage: int) -> Facts:
        slow = replace(nic("eth0", data, f"10.1.0.{number}"), speed=1000)
        return node(slow, nic("ens9", storage, f"10.9.0.{number}"))

    nodes = {"n1": host(1, 2, 3), "n2": host(2, 2, 3), "n3": host(3, 3, 2)}
    (finding,) = judge([nccl_picks_differ], nodes).findings
    assert (finding.nodes, finding.fix) == (("n3",), "ncheck plan nodes.txt")


def test_on_a_tie_both_sides_are_named() -> None:
    (finding,) = judge([nccl_picks_differ], cluster(2, size=2)).findings
    assert finding.nodes == ("n1", "n2")


def test_nccls_own_answer_counts_over_what_its_rules_say() -> None:
    nodes = cluster()
    nodes["n2"] = node(*two_wires(2), pick=picks("10.9.0.2"))
    (finding,) = judge([nccl_picks_differ], nodes).findings
    assert finding.nodes == ("n2",)


def test_where_the_names_differ_the_plan_names_each_nodes_own() -> None:
    nodes = {name: node(nic(name, 2, f"10.1.0.{i}"), nic(f"x{i}", 3, f"10.9.0.{i}")) for i, name in enumerate("ab", 1)}
    nodes["b"] = node(nic("x2", 2, "10.9.0.2"), nic("b", 3, "10.1.0.2"))
    (finding,) = judge([nccl_picks_differ], nodes).findings
    assert finding.fix == "ncheck plan nodes.txt"


def test_it_is_silent_where_all_pick_the_same_subnet_by_whatever_name() -> None:
    nodes = {"a": node(nic("eth0", 2, "10.1.0.1")), "b": node(nic("ens5", 2, "10.1.0.2"), docker(3))}
    assert outcomes(nodes) == {Outcome.PASSED}


def test_it_leaves_picks_that_lead_nowhere_to_their_own_check() -> None:
    nodes = cluster()
    nodes["n2"] = node(*two_wires(2), NCCL_SOCKET_IFNAME="^docker0")
    assert outcomes(nodes) == {Outcome.PASSED}


def test_it_is_silent_where_no_subnet_is_common_to_all_and_routers_join_them() -> None:
    nodes = {f"n{i}": node(nic("eth0", 2, f"10.{i}.0.1")) for i in (1, 2, 3)}
    assert outcomes(nodes) == {Outcome.PASSED}


def test_a_node_whose_release_is_not_known_is_left_out_where_old_and_new_rules_part() -> None:
    nodes = cluster()
    nodes["n2"] = node(nic("ens9", 2, "10.9.0.2", running=False), nic("eth0", 3, "10.1.0.2"), nccl=None)
    assert outcomes(nodes) == {Outcome.PASSED}
    nodes["n2"] = node(nic("ens9", 2, "10.9.0.2"), nic("eth0", 3, "10.1.0.2"), nccl=OLD)
    assert outcomes(nodes) == {Outcome.PASSED, Outcome.FAILED}
