"""NC327: a node whose netmask is not that of its network."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.netmask_differs import netmask_differs


def node(*addresses: str) -> Facts:
    """Return a node with eth0, eth1 ... that have these addresses: "10.1.0.7/16"."""
    interfaces = []
    for index, address in enumerate(addresses):
        ip, _, prefix = address.partition("/")
        held = (Address(ip, int(prefix)),)
        interfaces.append(
            Interface(f"eth{index}", index + 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=held)
        )
    return {NicFacts: NicFacts(tuple(interfaces)), IdentityFacts: Absent("not asked here")}


def findings(*nodes: Facts) -> list[Finding]:
    return judge([netmask_differs], {f"n{number}": facts for number, facts in enumerate(nodes, 1)}).findings


def test_a_node_with_a_shorter_network_is_named_with_the_line_that_mends_it() -> None:
    assert findings(*(node(f"10.9.0.{number}/24", f"10.1.0.{number}/16") for number in (1, 2, 3)),
                    node("10.9.0.4/24", "10.1.0.4/24")) == [
        Finding("NC327", "netmask-differs", Severity.ERROR, ("n4",),
                "the netmask in 10.1.0.0/16 differs: /16 on n[1-3], /24 on n4 (3 to 1)",
                ("n4: 10.1.0.4/24 on eth1",),
                "sudo ip address add 10.1.0.4/16 dev eth1 && sudo ip address del 10.1.0.4/24 dev eth1"),
    ]  # fmt: skip


def test_networks_of_four_and_of_one_address_are_named() -> None:
    for prefix in (30, 32):
        sick = node(f"10.1.0.4/{prefix}")
        (found,) = findings(node("10.1.0.1/16"), node("10.1.0.2/16"), node("10.1.7.3/16"), sick)
        assert (found.nodes, found.message) == (
            ("n4",), f"the netmask in 10.1.0.0/16 differs: /16 on n[1-3], /{prefix} on n4 (3 to 1)",
        )  # fmt: skip


def test_a_node_with_a_wider_network_is_named() -> None:
    (found,) = findings(node("10.1.0.1/24"), node("10.1.0.2/24"), node("10.1.0.3/8"))
    assert (found.nodes, found.message) == (
        ("n3",), "the netmask in 10.1.0.0/24 differs: /24 on n[1-2], /8 on n3 (2 to 1)",
    )  # fmt: skip


def test_in_a_tie_both_are_named_and_the_line_only_shows() -> None:
    (found,) = findings(node("10.1.0.1/16"), node("10.1.0.2/24"))
    assert (found.nodes, found.fix, found.kind) == (("n1", "n2"), "ip -br address show dev eth0", "look")


def test_several_nodes_share_one_finding_that_only_shows() -> None:
    sick = [node(f"10.1.0.{number}/24") for number in (6, 7)]
    (found,) = findings(*(node(f"10.1.0.{number}/16") for number in range(1, 6)), *sick)
    assert (found.nodes, found.kind) == (("n6", "n7"), "look")


def test_it_is_silent_where_all_have_the_same_and_where_each_has_a_network_of_its_own() -> None:
    assert findings(*(node(f"10.1.0.{number}/16") for number in (1, 2, 3))) == []
    assert findings(*(node(f"10.1.{number}.2/31") for number in (1, 2, 3))) == []
    assert findings(*(node(f"10.1.0.{number}/32") for number in (1, 2, 3))) == []


def test_it_is_silent_about_a_network_inside_another_where_nodes_are_in_both() -> None:
    both = [node(f"10.0.0.{number}/8", f"10.1.0.{number}/16") for number in (1, 2, 3)]
    assert findings(*both, node("10.0.0.4/8")) == []
    assert findings(*both, node("10.1.0.4/16")) == []


def test_it_is_silent_about_a_second_address_of_a_service() -> None:
    assert findings(node("10.1.0.1/24", "10.1.0.100/32"), node("10.1.0.2/24"), node("10.1.0.3/24")) == []


def test_it_is_silent_about_the_whole_length_that_dhcpv6_gives() -> None:
    assert findings(node("fd00::1/64"), node("fd00::2/64"), node("fd00::3/128")) == []
