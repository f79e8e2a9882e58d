"""NC417: the first GID is not of the network that the others use."""

from __future__ import annotations

from ncheck.facts.nics import Address, Interface, Kind, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.roce_gid_network_differs import roce_gid_network_differs

from .fabric import PASSED, SKIPPED, node, outcomes, roce


def with_nic(*addresses: str, **variables: str) -> Facts:
    nic = Interface("eth2", 3, Kind.PHYSICAL, up=True, running=True, mtu=9000,
                    addresses=tuple(Address(address, 16) for address in addresses))  # fmt: skip
    return {**node(roce(*addresses), **variables), NicFacts: NicFacts((nic,))}


def test_the_node_whose_addresses_are_in_another_order_is_named() -> None:
    nodes = {"n1": with_nic("10.1.0.1", "10.9.0.1"), "n2": with_nic("10.1.0.2"), "n3": with_nic("10.9.0.3", "10.1.0.3")}
    assert judge([roce_gid_network_differs], nodes).findings == [
        Finding("NC417", "roce-gid-network-differs", Severity.WARNING, ("n3",),
                "mlx5_0 port 1: NCCL would use different networks: 10.1.0.0/16 on n[1-2], 10.9.0.0/16 on n3 (2 to 1)",
                (), "echo NCCL_IB_ADDR_RANGE=10.1.0.0/16 >> ~/.nccl.conf", summary="mlx5_0 would use another network"),
    ]  # fmt: skip


def test_it_is_silent_about_routed_roce_and_where_the_choice_is_set() -> None:
    routed = (with_nic("10.1.0.1"), with_nic("10.1.0.2"), with_nic("10.3.0.1"))
    assert outcomes(judge, roce_gid_network_differs, *routed) == [PASSED, PASSED, PASSED]
    chosen = with_nic("10.9.0.3", "10.1.0.3", NCCL_IB_ADDR_RANGE="10.1.0.0/16")
    assert outcomes(judge, roce_gid_network_differs, *routed[:2], chosen) == [PASSED, PASSED, SKIPPED]
