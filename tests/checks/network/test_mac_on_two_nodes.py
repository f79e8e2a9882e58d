"""NC367: two nodes with one hardware address in a network."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.mac_on_two_nodes import mac_on_two_nodes

CLONED = "52:54:00:12:34:56"


def node(ip: str, mac: str, driver: str = "virtio_net") -> Facts:
    addresses = (Address(ip, 24), Address(f"fd00::{ip[-1]}", 64))
    nic = Interface("ens3", 2, Kind.CLOUD, up=True, running=True, mtu=1500, addresses=addresses, mac=mac, driver=driver)
    return {NicFacts: NicFacts((nic,)), IdentityFacts: Absent("not asked here")}


def findings(*nodes: Facts) -> list[Finding]:
    return judge([mac_on_two_nodes], {f"n{number}": facts for number, facts in enumerate(nodes, 1)}).findings


def test_both_nodes_are_named() -> None:
    assert findings(node("10.1.0.1", "52:54:00:00:00:01"), node("10.1.0.2", CLONED), node("10.1.0.3", CLONED)) == [
        Finding("NC367", "mac-on-two-nodes", Severity.ERROR, ("n2", "n3"),
                f"n[2-3] have the same hardware address in 10.1.0.0/24, {CLONED}",
                ("n2: ens3 10.1.0.2", "n3: ens3 10.1.0.3"), "ip link show dev ens3", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_where_each_node_has_its_own_or_none_is_known() -> None:
    assert findings(*(node(f"10.1.0.{number}", f"52:54:00:00:00:0{number}") for number in (1, 2, 3))) == []
    for none in ("", "00:00:00:00:00:00"):
        assert findings(node("10.1.0.1", none), node("10.1.0.2", none)) == []


def test_it_is_silent_about_nodes_in_different_networks_and_about_ipvlan() -> None:
    apart = Interface(
        "ens3", 2, Kind.CLOUD, up=True, running=True, mtu=1500, addresses=(Address("10.2.0.2", 24),), mac=CLONED
    )
    other = {**node("10.2.0.2", CLONED), NicFacts: NicFacts((apart,))}
    assert findings(node("10.1.0.1", CLONED), other) == []
    assert findings(*(node(f"10.1.0.{number}", CLONED, "ipvlan") for number in (1, 2))) == []
