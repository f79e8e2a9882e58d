"""NC416: a RoCE port without the GID that NCCL looks for."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.roce_gid_missing import roce_gid_missing

from .fabric import FAILED, PASSED, SKIPPED, node, outcomes, port, roce


def test_a_port_that_has_none_where_most_have_one_is_named() -> None:
    nodes = {f"n{number}": node(roce(f"10.1.0.{number}")) for number in (1, 2)} | {"n3": node(roce())}
    assert judge([roce_gid_missing], nodes).findings == [
        Finding("NC416", "roce-gid-missing", Severity.ERROR, ("n3",),
                "mlx5_0 port 1: no RoCE v2 GID with an IPv4 address", (), "ip -br address show dev eth2", kind="look",
                summary="mlx5_0 has no IPv4 GID"),
    ]  # fmt: skip


def test_of_two_nodes_the_one_without_is_named() -> None:
    assert outcomes(judge, roce_gid_missing, node(roce("10.1.0.1")), node(roce())) == [PASSED, FAILED]


def test_a_node_with_other_names_and_no_address_at_all_is_named() -> None:
    bare = node(roce(hca="rocep1s0"))
    assert outcomes(judge, roce_gid_missing, node(roce("10.1.0.1")), node(roce("10.1.0.2")), bare) == [
        PASSED,
        PASSED,
        FAILED,
    ]


def test_it_is_silent_about_ports_that_no_node_uses_ipv6_and_infiniband() -> None:
    spare = node(roce("10.1.0.1"), roce(hca="mlx5_1"))
    assert outcomes(judge, roce_gid_missing, spare, spare) == [PASSED, PASSED]
    assert outcomes(judge, roce_gid_missing, node(roce()), node(roce())) == [PASSED, PASSED]
    six = node(roce(), NCCL_IB_ADDR_FAMILY="AF_INET6")
    assert outcomes(judge, roce_gid_missing, node(roce("10.1.0.1")), node(roce("10.1.0.2")), six) == [
        PASSED,
        PASSED,
        SKIPPED,
    ]
    assert outcomes(judge, roce_gid_missing, node(port()), node(port())) == [SKIPPED, SKIPPED]


def test_a_port_that_the_job_does_not_use_needs_no_address() -> None:
    two = node(roce("10.1.0.1"), roce("10.2.0.1", hca="mlx5_1"))
    one = node(roce("10.1.0.3"), roce(hca="mlx5_1"), NCCL_IB_HCA="=mlx5_0")
    assert outcomes(judge, roce_gid_missing, two, two, one) == [PASSED, PASSED, PASSED]
