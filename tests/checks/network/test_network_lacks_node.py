"""NC309: a node that is out of a network that the others have."""

from __future__ import annotations

from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.network_lacks_node import network_lacks_node


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
    absent = dict.fromkeys((IdentityFacts, LinkFacts, InfinibandFacts), Absent("not asked here"))
    return {NicFacts: NicFacts(interfaces), JobFacts: JobFacts(), **absent}


def fast(number: int) -> Facts:
    return node(number, nic("fast0", f"10.8.0.{number}"))


def told(*nodes: Facts) -> list[tuple[tuple[str, ...], str, str]]:
    found = judge([network_lacks_node], {f"n{number}": facts for number, facts in enumerate(nodes, 1)}).findings
    return [(finding.nodes, finding.message, finding.fix) for finding in found]


def rail(number: int, *others: Interface) -> Facts:
    """Return a node on a network as fast as any: without another one the job loses nothing."""
    return known(nic("eth0", f"10.0.0.{number}"), *others)


def test_a_node_whose_card_has_no_link_is_named_though_another_network_is_as_fast() -> None:
    sick = rail(3, nic("fast0", "10.8.0.3", running=False, speed=None))
    others = {f"n{number}": rail(number, nic("fast0", f"10.8.0.{number}")) for number in (1, 2)}
    assert judge([network_lacks_node], {**others, "n3": sick}).findings == [
        Finding("NC309", "network-lacks-node", Severity.WARNING, ("n3",),
                "10.8.0.0/24 (100 Gb/s) connects n[1-2], but not n3: fast0 has no link", (), "sudo ethtool fast0",
                kind="look", summary="not in 10.8.0.0/24"),
    ]  # fmt: skip


def test_a_card_that_nobody_gave_an_address_is_named() -> None:
    others = [rail(number, nic("fast0", f"10.8.0.{number}")) for number in (1, 2)]
    assert told(*others, rail(3, nic("fast0"))) == [
        (("n3",), "10.8.0.0/24 (100 Gb/s) connects n[1-2], but not n3: fast0 has no address in this subnet",
         "ip -br address show dev fast0"),
    ]  # fmt: skip


def test_a_network_of_unknown_speed_is_compared_with_none() -> None:
    others = [rail(number, nic("fast0", f"10.8.0.{number}", speed=None)) for number in (1, 2)]
    assert [nodes for nodes, *_ in told(*others, rail(3, nic("fast0", "10.8.0.3", up=False)))] == [("n3",)]


def test_it_leaves_a_node_with_another_netmask_to_netmask_differs() -> None:
    wide = Interface("fast0", 3, Kind.PHYSICAL, up=True, running=True, mtu=1500, speed=100000,
                     addresses=(Address("10.8.0.3", 16),))  # fmt: skip
    others = [rail(number, nic("fast0", f"10.8.0.{number}")) for number in (1, 2)]
    assert told(*others, rail(3, wide)) == []


def test_it_leaves_networks_whose_loss_slows_the_job_down_to_fast_network_lacks_node() -> None:
    assert told(fast(1), fast(2), node(3, nic("fast0", "10.8.0.3", running=False, speed=None))) == []


def test_it_is_silent_where_all_nodes_are_in_all_networks() -> None:
    assert told(fast(1), fast(2), fast(3)) == []


def test_it_is_silent_about_a_slower_network_of_some_nodes() -> None:
    slow = [node(number, nic("usb1", f"10.9.0.{number}", speed=100)) for number in (1, 2)]
    assert told(*slow, node(3)) == []


def test_it_is_silent_about_rails_of_each_node_s_own_and_about_spare_ports() -> None:
    rails = [node(number, nic("fast0", f"10.{number}.0.2"), nic("eno2", running=False)) for number in (1, 2, 3)]
    assert told(*rails) == []


def test_it_is_silent_about_a_fast_private_network_of_a_few() -> None:
    assert told(fast(1), node(2), node(3), node(4)) == []


def test_it_leaves_link_local_addresses_and_bridges_of_containers_to_others() -> None:
    lost = node(3, nic("fast0", "fe80::3"))
    docker = node(4, nic("fast0", "10.8.0.4"), nic("docker0", "172.17.0.1", kind=Kind.CONTAINER_BRIDGE, running=False))
    assert told(fast(1), fast(2), lost, docker) == []


def test_it_leaves_nodes_without_any_network_to_others() -> None:
    dark = known(nic("eth0", "10.0.0.3", running=False))
    assert told(node(1), node(2), dark) == []


def test_it_is_silent_about_an_address_that_two_nodes_show() -> None:
    own = nic("tmfifo_net0", "192.168.100.1", speed=200000)
    assert told(node(1, own), node(2, own), node(3)) == []
