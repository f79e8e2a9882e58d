"""NC329: a node that is out of the fastest network, so that the job uses a slower one."""

from __future__ import annotations

from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.links import LinkCause, LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.nccl.link_problems import ALSO
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.fast_network_lacks_node import fast_network_lacks_node

from .linked import ALL, both, cluster, ways


def nic(
    name: str, *ips: str, speed: int | None = 100000, up: bool = True, running: bool = True,
    kind: Kind = Kind.PHYSICAL,
) -> Interface:  # fmt: skip
    index = {"eth0": 2, "fast0": 3}.get(name, 4)
    addresses = tuple(Address(ip, 24, "link" if ip.startswith("fe80") else "global") for ip in ips)
    return Interface(name, index, kind, up=up, running=running, mtu=1500, addresses=addresses, speed=speed)


def node(number: int, *others: Interface) -> Facts:
    return known(nic("eth0", f"10.0.0.{number}", speed=1000), *others)


def known(*interfaces: Interface) -> Facts:
    absent = dict.fromkeys((IdentityFacts, LinkFacts, *ALSO), Absent("not asked here"))
    return {**absent, NicFacts: NicFacts(interfaces), JobFacts: JobFacts()}


def fast(number: int) -> Facts:
    return node(number, nic("fast0", f"10.8.0.{number}"))


def told(*nodes: Facts) -> list[tuple[tuple[str, ...], str, str]]:
    found = judge([fast_network_lacks_node], {f"n{number}": facts for number, facts in enumerate(nodes, 1)}).findings
    return [(finding.nodes, finding.message, finding.fix) for finding in found]


LOSS = "; the plan uses 10.0.0.0/24 (1 Gb/s), 100 times slower"


def test_a_node_whose_fast_card_has_no_link_is_named_with_the_factor() -> None:
    sick = node(3, nic("fast0", "10.8.0.3", running=False, speed=None))
    assert judge([fast_network_lacks_node], {"n1": fast(1), "n2": fast(2), "n3": sick}).findings == [
        Finding("NC329", "fast-network-lacks-node", Severity.ERROR, ("n3",),
                f"10.8.0.0/24 (100 Gb/s) connects n[1-2], but not n3: fast0 has no link{LOSS}", (),
                "sudo ethtool fast0", kind="look", summary="not in 10.8.0.0/24"),
    ]  # fmt: skip


def test_of_two_nodes_the_one_without_a_link_is_named() -> None:
    sick = node(2, nic("fast0", "10.8.0.2", up=False, running=False))
    assert told(fast(1), sick) == [
        (("n2",), f"10.8.0.0/24 (100 Gb/s) connects n1, but not n2: fast0 is down{LOSS}", "sudo ip link set fast0 up"),
    ]


def test_a_card_that_nobody_gave_an_address_is_named() -> None:
    assert told(fast(1), node(2, nic("fast0"))) == [
        (("n2",), f"10.8.0.0/24 (100 Gb/s) connects n1, but not n2: fast0 has no address in this subnet{LOSS}",
         "ip -br address show dev fast0"),
    ]  # fmt: skip


def test_a_node_without_the_fast_network_is_named() -> None:
    assert told(node(1), fast(2), fast(3), fast(4)) == [
        (("n1",), f"10.8.0.0/24 (100 Gb/s) connects n[2-4], but not n1: no interface in this subnet{LOSS}",
         "ip -br address"),
    ]  # fmt: skip


def test_a_node_that_the_others_do_not_reach_on_the_fast_network_is_named_with_the_factor() -> None:
    known = cluster({1: {}, 2: both([3], [1, 2, 4])}, speeds={1: 10000, 2: 25000})
    (finding,) = judge([fast_network_lacks_node], known).findings
    assert finding.nodes == ("n3",)
    assert finding.message == (
        "n3 cannot reach any node on 10.2.0.0/24, and no node can reach it: no answer; "
        "the plan uses 10.1.0.0/24 (10 Gb/s), 2.5 times slower"
    )


def test_a_hole_for_large_packets_in_the_fast_network_is_named_even_between_all() -> None:
    known = cluster({1: {}, 2: ways(ALL, ALL, LinkCause.LARGE_LOST)}, speeds={1: 10000, 2: 100000})
    (finding,) = judge([fast_network_lacks_node], known).findings
    assert finding.message == (
        "large packets are lost on 10.2.0.0/24 between all nodes: small packets pass "
        "(MTU 1500 at both ends: something between them has a smaller one); "
        "the plan uses 10.1.0.0/24 (10 Gb/s), 10 times slower"
    )


def test_it_is_silent_about_a_fast_network_in_which_no_node_reaches_another() -> None:
    known = cluster({1: {}, 2: ways(ALL, ALL)}, speeds={1: 10000, 2: 100000})
    assert judge([fast_network_lacks_node], known).findings == []


def test_it_is_silent_where_the_broken_network_is_no_faster_or_its_speed_is_unknown() -> None:
    for speeds in ({1: 10000, 2: 10000}, {1: 10000}, {2: 10000}):
        known = cluster({1: {}, 2: both([3], [1, 2, 4])}, speeds=speeds)
        assert judge([fast_network_lacks_node], known).findings == []


def test_it_is_silent_where_rdma_carries_the_data_or_the_user_requested_an_interface() -> None:
    active = InfinibandFacts((HcaPort("mlx5_0", 1, "Active", "LinkUp", 400.0, "InfiniBand"),), "ibstat")
    sick = node(3, nic("fast0", "10.8.0.3", running=False))
    for given in ({InfinibandFacts: active}, {JobFacts: JobFacts("eth0")}):
        assert told(*({**facts, **given} for facts in (fast(1), fast(2), sick))) == []


def test_it_is_silent_where_all_nodes_are_in_all_networks() -> None:
    assert told(fast(1), fast(2), fast(3)) == []


def test_it_is_silent_about_a_fast_private_network_of_a_few() -> None:
    assert told(fast(1), node(2), node(3), node(4)) == []
