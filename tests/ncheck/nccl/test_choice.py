"""NCCL's choice of interface, held to what real libraries (2.21.5, 2.27.5, 2.32.3) were seen to choose."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.nccl.choice import choices, nccl_choice
from ncheck.nccl.settings import Release
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
    assert [nic.name for nic, _ in choice.used] == ["eth0", "br-abc123"]
    assert choice.why == "the first in the kernel's order except docker*, lo and virbr*"


def test_a_rendezvous_address_decides_by_its_subnet() -> None:
    settings = {"NCCL_COMM_ID": "10.0.3.1:4444"}
    assert nccl_choice(nics("eth0", "eth1"), settings, NEW).name == "eth1"
    assert nccl_choice(nics("eth0"), settings, NEW).picked is None
    assert nccl_choice(nics("eth0", "eth1:down"), settings, NEW).name == "eth1"


def used(names: NicFacts, release: Release, **settings: str) -> list[str]:
    """Return the interfaces that the TCP transport uses, with their addresses."""
    return [f"{nic.name} {address.ip}" for nic, address in nccl_choice(names, settings, release).used]


# The releases between which the source of misc/socket.cc (include/socket.h, os/linux.cc) chooses otherwise.
EVERY = ((2, 4, 8), (2, 7, 8), (2, 10, 3), (2, 18, 5), (2, 21, 5), (2, 27, 7), (2, 28, 3), (2, 30, 7))


@pytest.mark.parametrize("release", EVERY)
def test_every_release_uses_a_veth_at_its_link_local_address_after_what_has_ipv4(release: tuple[int, ...]) -> None:
    link = Address("fe80::9", 64, "link")
    veth = Interface("veth9", 2, Kind.VETH, up=True, running=True, mtu=1500, addresses=(link,))
    wire = _nic("eno1", 3, Address("10.0.0.5", 24))
    both = NicFacts((veth, replace(wire, addresses=(*wire.addresses, link))))
    assert used(both, release) == ["eno1 10.0.0.5", "veth9 fe80::9"]
    assert used(both, release, NCCL_SOCKET_FAMILY="AF_INET") == ["eno1 10.0.0.5"]
    assert used(both, release, NCCL_SOCKET_FAMILY="AF_INET6") == ["veth9 fe80::9", "eno1 fe80::9"]
    assert used(both, release, NCCL_SOCKET_IFNAME="eno") == ["eno1 10.0.0.5"]


@pytest.mark.parametrize("release", EVERY)
def test_virbr_is_used_until_2_28_3(release: tuple[int, ...]) -> None:
    assert ("virbr0 10.0.3.5" in used(nics("eth0", "virbr0"), release)) == (release < (2, 28, 3))


@pytest.mark.parametrize("release", EVERY)
def test_an_equals_sign_makes_names_exact_since_2_5_6(release: tuple[int, ...]) -> None:
    exact = ["eth1 10.0.2.5"] if release >= (2, 5, 6) else []
    assert used(nics("eth1", "eth10"), release, NCCL_SOCKET_IFNAME="=eth1") == exact
    excluded = [] if release >= (2, 5, 6) else ["eth1 10.0.2.5"]
    assert [
        one for one in used(nics("eth1", "eth10"), release, NCCL_SOCKET_IFNAME="^=eth1") if "eth1 " in one
    ] == excluded


def test_it_uses_sixteen_interfaces_at_most() -> None:
    assert len(used(nics(*(f"eth{number}" for number in range(20))), NEW)) == 16


def test_over_tcp_a_rendezvous_address_decides_unless_a_name_or_ib_does() -> None:
    rendezvous = {"NCCL_COMM_ID": "10.0.3.1:4444"}
    assert used(nics("eth0", "eth1", "veth9"), NEW, **rendezvous) == ["eth1 10.0.3.5"]
    assert used(nics("eth0", "eth1", "ib0"), NEW, **rendezvous) == ["ib0 10.0.4.5"]
    assert used(nics("eth0", "eth1", "veth9"), NEW, **rendezvous, NCCL_SOCKET_IFNAME="eth0,veth") == [
        "eth0 10.0.2.5", "veth9 10.0.4.5",
    ]  # fmt: skip


def test_what_nccl_answers_comes_first_and_what_the_rules_list_after_it_is_used_too() -> None:
    def asked(address: str) -> list[str]:
        held, environment = nics("br-abc123", "eth0", "veth9"), EnvironmentFacts({}, {})
        (choice,) = choices(held, environment, LoadedNcclFacts("2.30.7", "/x"), NcclPickFacts(address, "2.30.7"))
        return [nic.name for nic, _ in choice.used]

    assert asked("10.0.2.5") == ["br-abc123", "eth0", "veth9"]
    assert asked("10.0.3.5") == ["eth0", "veth9"]
    assert asked("127.0.0.1") == ["lo", "br-abc123", "eth0", "veth9"]
