from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ncheck.facts.learning import facts_of
from ncheck.facts.nics import INTERFACES, Address, Interface, NicFacts, nics
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Unread
from ncheck.parse.interface_names import Kind

Answered = Callable[[Mapping[Any, Reply]], Evidence]
Link = dict[str, object]

WIRE: Link = {"device": "/sys/devices/pci0000:3a/0000:3b:00.0", "pci": "0000:3b:00.0", "driver": "mlx5_core", "numa": 1}
LO: Link = {"name": "lo", "index": 1, "loopback": True, "type": 772, "mtu": 65536}


def link(name: str, index: int, **said: object) -> Link:
    address = said.pop("ip", None)
    addresses = [{"ip": address, "prefix": 24, "family": 4, "scope": "global"}] if address else []
    state = {"up": True, "running": True, "mtu": 1500, "type": 1, "addresses": addresses}
    return {"name": name, "index": index, **state, **said}


def read(answered: Answered, *links: Link, routes: tuple[str, ...] = ()) -> dict[str, Interface]:
    value = {"interfaces": [LO, *links], "default_routes": list(routes), "source": "getifaddrs"}
    reply = Reply(Status.OK, value=value)  # type: ignore[arg-type]
    facts = nics(answered({INTERFACES: reply}))
    assert isinstance(facts, NicFacts)
    return {nic.name: nic for nic in facts.interfaces}


def test_every_word_of_an_interface_is_kept(answered: Answered) -> None:
    said = link("enp59s0", 3, ip="10.4.0.7", speed=100000, mac="b8:59:9f:00:00:01", hca="mlx5_2", **WIRE)
    assert read(answered, said, routes=("enp59s0",))["enp59s0"] == Interface(
        "enp59s0", 3, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address("10.4.0.7", 24),),
        driver="mlx5_core", pci="0000:3b:00.0", numa=1, speed=100000, mac="b8:59:9f:00:00:01", hca="mlx5_2",
        default_route=True,
    )  # fmt: skip


@pytest.mark.parametrize(("shown", "speed"), [(10, 10), (800_000, 800_000), (0, None), (-5, None), (2**32 - 1, None)])
def test_a_speed_that_no_nic_has_is_unknown(answered: Answered, shown: int, speed: int | None) -> None:
    assert read(answered, link("enp59s0", 3, speed=shown, **WIRE))["enp59s0"].speed == speed


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (link("ens3", 2, device="/sys/devices/pci0000:00/0000:00:03.0/virtio1", driver="virtio_net"), Kind.CLOUD),
        (link("ens5", 2, device="/sys/devices/pci0000:00/0000:00:05.0", driver="ena"), Kind.CLOUD),
        (link("ibp59s0", 2, **{**WIRE, "type": 32}), Kind.INFINIBAND),
        (link("bond0", 2, bond=True), Kind.BOND),
        (link("storage", 2, devtype="vlan", vlan_id=100, peer_index=7), Kind.VLAN),
        (link("wlp2s0", 2, wireless=True, **WIRE), Kind.WIFI),
        (link("eth0", 2, peer_index=41), Kind.VETH),
        (link("enp1s0", 2, peer_index=41), Kind.VETH),
        (link("tun-office", 2, tun=True, type=65534), Kind.TUN),
        (link("wg7", 2, devtype="wireguard", type=65534), Kind.TUN),
        (link("flannel.1", 2, devtype="vxlan"), Kind.OVERLAY),
        (link("net1", 2, devtype="macvlan", peer_index=2), Kind.MACVLAN),
        (link("enx0a1b", 2, device="/sys/devices/pci0000:00/usb1/1-1", driver="rndis_host"), Kind.OTHER),
        (link("eth0", 2, driver="veth"), Kind.VETH),
        (link("enp3s0", 2, driver="macvlan", peer_index=2), Kind.MACVLAN),
        (link("br-ex", 2, driver="openvswitch"), Kind.OTHER),
        (link("docker0", 2, driver="veth", peer_index=3), Kind.CONTAINER_BRIDGE),
        (link("dummy0", 2), Kind.OTHER),
        (link("docker0", 2, bridge=True), Kind.CONTAINER_BRIDGE),
        (link("docker0", 2, peer_index=9), Kind.CONTAINER_BRIDGE),
    ],
)  # fmt: skip
def test_the_kernels_own_account_decides_what_an_interface_is(answered: Answered, said: Link, kind: Kind) -> None:
    assert read(answered, said)[str(said["name"])].kind is kind


def test_a_bonds_members_are_no_interfaces_of_their_own(answered: Answered) -> None:
    seen = read(answered, link("eno1", 2, master="bond0", **WIRE), link("bond0", 3, bond=True, ip="10.0.0.4"))
    assert {name: nic.kind for name, nic in seen.items()} == {
        "lo": Kind.LOOPBACK, "eno1": Kind.BOND_SLAVE, "bond0": Kind.BOND,
    }  # fmt: skip


def test_a_bridge_with_a_wire_on_it_is_the_lans_and_one_of_veths_is_the_containers(answered: Answered) -> None:
    seen = read(
        answered,
        link("eno1", 2, master="lan", **WIRE),
        link("lan", 3, bridge=True, lower=["eno1"], ip="10.0.0.4"),
        link("veth7", 4, master="pods", peer_index=2),
        link("pods", 5, bridge=True, lower=["veth7"], ip="10.88.0.1"),
    )
    assert (seen["lan"].kind, seen["pods"].kind) == (Kind.BRIDGE, Kind.CONTAINER_BRIDGE)


def test_a_containers_only_connection_is_its_uplink_and_never_usable(answered: Answered) -> None:
    seen = read(
        answered,
        link("eth0", 2, ip="10.244.3.9", peer_index=41),
        link("docker0", 3, bridge=True, ip="172.17.0.1"),
        routes=("eth0",),
    )
    assert {name: (nic.usable, nic.uplink) for name, nic in seen.items()} == {
        "lo": (False, False), "eth0": (False, True), "docker0": (False, False),
    }  # fmt: skip


def test_a_veth_beside_a_real_wire_is_no_uplink(answered: Answered) -> None:
    seen = read(answered, link("eno1", 2, ip="10.0.0.4", **WIRE), link("veth7", 3, ip="10.88.0.9", peer_index=2))
    assert (seen["eno1"].usable, seen["veth7"].uplink) == (True, False)


def test_a_pods_end_on_a_bridge_or_without_an_address_is_no_uplink(answered: Answered) -> None:
    seen = read(answered, link("veth1", 2, peer_index=5, master="cni0", ip="10.9.0.1"), link("veth2", 3, peer_index=6))
    assert [nic.uplink for nic in seen.values()] == [False, False, False]


def test_an_agent_that_could_not_answer_leaves_the_interfaces_unread(answered: Answered) -> None:
    reply = Reply(Status.FAILED, reason="OSError: [Errno 5] Input/output error")
    assert nics(answered({INTERFACES: reply})) == Unread(
        "the agent's interfaces: OSError: [Errno 5] Input/output error"
    )


@pytest.mark.parametrize("ip", ["$(reboot)", "", "10.0.0.1; reboot", "fe80::1%$(reboot)", "10.0.0.1/8"])
def test_what_is_no_address_is_never_taken_for_one(answered: Answered, ip: str) -> None:
    address = {"ip": ip, "prefix": 24, "family": 4, "scope": "global"}
    assert_unread(answered, link("eth0", 2, addresses=[address]))


@pytest.mark.parametrize("prefix", [-5, 33, 10**400])
def test_a_prefix_that_is_none_leaves_the_interfaces_unread(answered: Answered, prefix: int) -> None:
    address = {"ip": "10.0.0.1", "prefix": prefix, "family": 4, "scope": "global"}
    assert_unread(answered, link("eth0", 2, addresses=[address]))


@pytest.mark.parametrize("index", ["2", None, True, [2]])
def test_an_index_that_is_no_number_leaves_the_interfaces_unread(answered: Answered, index: object) -> None:
    assert_unread(answered, {**link("eth0", 2), "index": index})


def assert_unread(answered: Answered, said: Link) -> None:
    value = {"interfaces": [LO, said], "default_routes": []}
    reply = Reply(Status.OK, value=value)  # type: ignore[arg-type]
    assert isinstance(facts_of(answered({INTERFACES: reply}), (NicFacts,))[NicFacts], Unread)


@pytest.mark.parametrize("name", ["", "eth0\nreboot", "a b", "\x1b[2J", "\u202eeth0", "eth0/..", "e" * 65])
def test_a_name_that_no_interface_has_is_not_read(answered: Answered, name: str) -> None:
    value = {"interfaces": [LO, link(name, 2)], "default_routes": []}
    told = facts_of(answered({INTERFACES: Reply(Status.OK, value=value)}), [NicFacts])[NicFacts]  # type: ignore[arg-type]
    assert isinstance(told, Unread)
    assert "is not an interface name" in told.reason


def test_more_interfaces_than_any_node_has_are_not_read(answered: Answered) -> None:
    value = {"interfaces": [link(f"e{number}", number) for number in range(9000)], "default_routes": []}
    told = facts_of(answered({INTERFACES: Reply(Status.OK, value=value)}), [NicFacts])[NicFacts]  # type: ignore[arg-type]
    assert told == Unread("could not be parsed: ValueError: 9000 interfaces: more than any node has")
