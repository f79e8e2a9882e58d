"""NCCL's choice of interface, held to what real libraries (2.21.5, 2.27.5, 2.32.3) were seen to choose."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.nccl.choice import nccl_choice
from ncheck.parse.interface_names import Kind

OLD, NEW = (2, 21, 5), (2, 32, 3)
BOTH = (OLD, NEW)


def nics(*names: str) -> NicFacts:
    """Make interfaces in the kernel's order after lo; "eth1:down" has an address and no link."""
    found = [_nic("lo", 1, Address("127.0.0.1", 8, "host"))]
    for index, word in enumerate(names, 2):
        name, _, state = word.partition(":")
        found.append(replace(_nic(name, index, Address(f"10.0.{index}.5", 24)), running=state != "down"))
    return NicFacts(tuple(found))


def _nic(name: str, index: int, address: Address) -> Interface:
    return Interface(name, index, Kind.OTHER, up=True, running=True, mtu=1500, addresses=(address,))


OBSERVED = [
    (("docker0",), "", "docker0", "docker0"),
    (("docker0", "eth1:down", "eth10"), "", "eth1", "eth10"),
    (("eth1:down", "eth10"), "eth1", "eth1", "eth10"),
    (("eth1:down",), "=eth1", "eth1", ""),
    (("docker0", "eth10"), "^eth10", "lo", "lo"),
    (("docker0", "eth1"), "^=eth1", "lo", "lo"),
    (("docker0", "eth1"), "^docker0", "lo", "lo"),
    (("eth1", "eth10"), "eth10,eth1", "eth1", "eth1"),
    (("docker0", "eth1"), "e", "eth1", "eth1"),
    (("eth1",), "10.0.2.5", "", ""),
    (("eth1",), "10.0.2.0/24", "", ""),
    (("eth0",), " eth0", "", ""),
    (("eth0",), "ETH0", "", ""),
    (("eth1", "ib0"), "", "ib0", "ib0"),
    (("br-abc123", "veth9", "tailscale0"), "", "br-abc123", "br-abc123"),
    (("virbr0", "docker0"), "", "virbr0", "docker0"),
    (("tap5:down",), "tap5", "tap5", ""),
    (("eth0", "eth01"), "=eth01", "eth01", "eth01"),
    (("eth0",), "=^eth0", "", ""),
    (("eth0", "eth1"), "eth1:1", "eth1", "eth1"),
    ((), "", "lo", "lo"),
]


@pytest.mark.parametrize(("names", "setting", "old", "new"), OBSERVED)
def test_it_picks_what_the_library_was_seen_to_pick(names: tuple[str, ...], setting: str, old: str, new: str) -> None:
    settings = {"NCCL_SOCKET_IFNAME": setting} if setting else {}
    assert [nccl_choice(nics(*names), settings, release).name for release in BOTH] == [old, new]


def test_link_state_counts_since_2_28_3() -> None:
    down = nics("eth1:down", "eth2")
    assert [nccl_choice(down, {}, release).name for release in ((2, 28, 2), (2, 28, 3))] == ["eth1", "eth2"]


def test_ipv4_comes_before_ipv6_whatever_the_order_of_the_interfaces() -> None:
    both = NicFacts((_nic("eth0", 2, Address("fd00::5", 64)), *nics("eth9").interfaces))
    assert nccl_choice(both, {}, NEW).name == "eth9"
    assert nccl_choice(both, {"NCCL_SOCKET_FAMILY": "AF_INET6"}, NEW).name == "eth0"


def test_the_tcp_transport_uses_every_interface_that_the_rule_finds() -> None:
    choice = nccl_choice(nics("eth0", "br-abc123", "docker0"), {}, NEW)
    assert [nic.name for nic in choice.used] == ["eth0", "br-abc123"]
    assert choice.why == "the first in the kernel's order except docker*, lo and virbr*"


def test_a_rendezvous_address_decides_by_its_subnet() -> None:
    settings = {"NCCL_COMM_ID": "10.0.3.1:4444"}
    assert nccl_choice(nics("eth0", "eth1"), settings, NEW).name == "eth1"
    assert nccl_choice(nics("eth0"), settings, NEW).picked is None
    assert nccl_choice(nics("eth0", "eth1:down"), settings, NEW).name == "eth1"
