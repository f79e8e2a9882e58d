"""NC303: speeds are compared within a shared subnet."""

from __future__ import annotations

from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.interface_speed_differs import interface_speed_differs


def node(number: int, speed: int | None, management: int | None = 1000) -> Facts:
    def nic(name: str, index: int, ip: str, speed: int | None) -> Interface:
        address = (Address(ip, 24),)
        return Interface(name, index, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=address, speed=speed)

    return {
        NicFacts: NicFacts((nic("eth0", 2, f"10.1.0.{number}", management), nic("eth1", 3, f"10.2.0.{number}", speed)))
    }


def test_a_slower_interface_is_named_in_its_subnet() -> None:
    nodes = {"n1": node(1, 25000), "n2": node(2, 25000), "n3": node(3, 1000)}
    assert judge([interface_speed_differs], nodes).findings == [
        Finding("NC303", "interface-speed-differs", Severity.WARNING, ("n3",),
                "the speed of interfaces in 10.2.0.0/24 differs: 25 Gb/s on n[1-2], 1 Gb/s on n3 (2 to 1)", (),
                "sudo ethtool eth1", kind="look"),
    ]  # fmt: skip


def test_it_is_silent_about_a_slow_network_beside_a_fast_one() -> None:
    assert judge([interface_speed_differs], {"n1": node(1, 25000), "n2": node(2, 25000)}).findings == []


def test_it_is_silent_about_drivers_that_tell_no_speed() -> None:
    assert judge([interface_speed_differs], {"n1": node(1, 25000), "n2": node(2, None)}).findings == []
