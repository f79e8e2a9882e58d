"""NC328: an address that two nodes have in a network of others."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.address_on_two_nodes import address_on_two_nodes


def node(*addresses: str) -> Facts:
    """Return a node with eth0, eth1 ... that have these addresses in subnets of /24."""
    nics = (
        Interface(f"eth{index}", index + 2, Kind.PHYSICAL, up=True, running=True, mtu=1500,
                  addresses=(Address(ip, 24),), mac=f"02:00:00:00:00:0{index}")
        for index, ip in enumerate(addresses)
    )  # fmt: skip
    return {NicFacts: NicFacts(tuple(nics)), IdentityFacts: Absent("not asked here")}


def findings(*nodes: Facts) -> list[Finding]:
    return judge([address_on_two_nodes], {f"n{number}": facts for number, facts in enumerate(nodes, 1)}).findings


def test_both_nodes_with_the_address_are_named() -> None:
    nodes = [node(f"10.0.0.{number}", f"10.1.0.{number}") for number in (1, 2)]
    assert findings(*nodes, node("10.0.0.3", "10.1.0.2")) == [
        Finding("NC328", "address-on-two-nodes", Severity.ERROR, ("n2", "n3"),
                "n[2-3] have the same address, 10.1.0.2", ("n2: eth1 02:00:00:00:00:01", "n3: eth1 02:00:00:00:00:01"),
                "ip -br address show to 10.1.0.2", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_each_address_is_one_nodes() -> None:
    assert findings(*(node(f"10.0.0.{number}", f"10.1.0.{number}") for number in (1, 2, 3))) == []


def test_it_is_silent_about_networks_of_each_nodes_own() -> None:
    assert findings(*(node(f"10.0.0.{number}", "192.168.100.1") for number in (1, 2, 3))) == []
    ends = [node(f"10.0.0.{number}", f"192.168.100.{1 + number % 2}") for number in range(1, 9)]
    assert findings(*ends) == []
    assert findings(*ends[::2], ends[1]) == []


def test_it_leaves_nodes_that_share_no_other_network_to_no_common_subnet() -> None:
    assert findings(node("10.1.0.1"), node("10.1.0.2"), node("10.1.0.2")) == []
