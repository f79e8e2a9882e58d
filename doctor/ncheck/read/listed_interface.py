"""One interface as a tool's output lists it, and its class as far as that output shows it.

There is no sysfs to look at: flags, link type, the name linked_to the @, names and hardware addresses have to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.interface_names import Kind, kind_by_name

# What `ncheck read` calls each kind.
CLASS = {
    Kind.LOOPBACK: "loopback", Kind.PHYSICAL: "physical", Kind.CLOUD: "cloud", Kind.INFINIBAND: "ib", Kind.BOND: "bond",
    Kind.BOND_SLAVE: "bond_slave", Kind.VLAN: "vlan", Kind.BRIDGE: "bridge", Kind.WIFI: "wifi", Kind.VETH: "container",
    Kind.CONTAINER_BRIDGE: "container", Kind.OVERLAY: "overlay", Kind.TUN: "tunnel", Kind.OTHER: "virtual",
    Kind.MACVLAN: "virtual",
}  # fmt: skip

# The classes over which a job's data should not leave the machine.
VIRTUAL = frozenset(
    {"loopback", "container", "overlay", "tunnel", "virtual", "alias", "unusable", "bond_slave", "bridge"}
)

# 42:01 is Google's, 00:0d:3a and the five after it Microsoft's, 00:16:3e Xen's and Alibaba's, fa:16:3e OpenStack's
_CLOUD_ADDRESS = expression(r"42:01|00:0d:3a|00:22:48|60:45:bd|7c:1e:52|7c:ed:8d|00:15:5d|00:16:3e|fa:16:3e")
_CLOUD_MTU = frozenset({1460, 9001})  # the MTU of Google's and of Amazon's networks
_NAT_OF_A_VM = "10.0.2.15"  # the same on every guest: the user-mode NAT of VirtualBox and QEMU

#     inet6 fe80::3eec:efff:fe00:10/64 scope link
#           inet6 addr: fe80::202:c903:fb:9/64 Scope:Link
INET6 = expression(r"\binet6 (?:addr:)?\s*([0-9a-fA-F:]*:[0-9a-fA-F:.]+)")
_MODEM = expression(r"ww(?:an|p|s|x|u)")  # wwan0


@dataclass(frozen=True)
class ListedInterface:
    """One interface of a listing; None means that the text does not show it.

    `linked_to` is what follows the @ in its name, `link` the link type ("ether", "infiniband"), `details` what
    `ip -d` prints (vlan, vxlan, tun ...). `has_address`: it has an IPv4 address, even if the text masks it. `ipv6`
    is the first IPv6 address.
    """

    name: str
    state: str | None = None
    ipv4: str | None = None
    prefix: int | None = None
    mtu: int | None = None
    flags: frozenset[str] = frozenset()
    link: str | None = None
    mac: str | None = None
    master: str | None = None
    linked_to: str | None = None
    other_namespace: bool = False
    details: str = ""
    has_address: bool = False
    name_shown: bool = True  # False: an author has replaced the name
    ipv6: str | None = None


def class_of(interface: ListedInterface, listing: Sequence[ListedInterface]) -> str:
    """Return the class: loopback, physical, cloud, ib, bond, bond_slave, vlan, bridge, wifi, container, overlay,
    tunnel, virtual, alias or unusable.
    """
    if re.fullmatch(r"\S+:\d+", interface.name):
        return "alias"
    if _MODEM.match(interface.name):
        return "unusable"
    return CLASS[_kind(interface, listing)]


def _kind(interface: ListedInterface, listing: Sequence[ListedInterface]) -> Kind:
    by_flags = _by_flags(interface)
    named = kind_by_name(interface.name) if interface.name_shown else None
    if by_flags in (Kind.LOOPBACK, Kind.INFINIBAND, Kind.BOND_SLAVE, Kind.BOND):
        return by_flags
    if named in (Kind.CONTAINER_BRIDGE, Kind.OVERLAY):
        return _bridge_or_overlay(interface, named)
    return by_flags or named or _veth_or_vlan(interface, listing) or _plain(interface)


def _bridge_or_overlay(interface: ListedInterface, named: Kind) -> Kind:
    """Separate libvirt's bridge, which connects virtual machines, from that of a container engine."""
    return Kind.OTHER if interface.name.startswith("virbr") else named


def _by_flags(interface: ListedInterface) -> Kind | None:
    """Return the kind that flags, link type and details show."""
    if "LOOPBACK" in interface.flags or interface.link == "loopback":
        return Kind.LOOPBACK
    if "SLAVE" in interface.flags or (interface.master and kind_by_name(interface.master) is Kind.BOND):
        return Kind.BOND_SLAVE
    if "MASTER" in interface.flags:
        return Kind.BOND
    if interface.link == "infiniband":
        return Kind.INFINIBAND
    found = re.search(
        r"\b(vlan|vxlan|geneve|macvlan|ipvlan|veth|tun|ipip|gre|wireguard|dummy|bridge)\b(?= |$)", interface.details
    )
    return _BY_DETAIL.get(found[1]) if found else None


_BY_DETAIL = {
    "vlan": Kind.VLAN, "vxlan": Kind.OVERLAY, "geneve": Kind.OVERLAY, "macvlan": Kind.MACVLAN, "ipvlan": Kind.MACVLAN,
    "veth": Kind.VETH, "ipip": Kind.TUN, "gre": Kind.TUN,
    "tun": Kind.TUN, "wireguard": Kind.TUN, "dummy": Kind.OTHER,
}  # fmt: skip


def _veth_or_vlan(interface: ListedInterface, listing: Sequence[ListedInterface]) -> Kind | None:
    """Separate the end of a veth pair, whose peer is in another namespace, from a VLAN on an interface of this one."""
    if interface.other_namespace or re.fullmatch(r"if\d+", interface.linked_to or "") or has_docker_mac(interface):
        return Kind.VETH
    below = any(interface.mac and other.mac == interface.mac and other.name != interface.name for other in listing)
    if interface.linked_to and below:
        return Kind.VLAN
    return None


def has_docker_mac(interface: ListedInterface) -> bool:
    """Return whether the MAC address is the one that Docker makes from the IP address: 02:42:ac:11:00:02."""
    octets = [f"{int(octet):02x}" for octet in (interface.ipv4 or "").split(".") if octet.isdigit()]
    return interface.mac == ":".join(("02", "42", *octets))


def _plain(interface: ListedInterface) -> Kind:
    if interface.ipv4 == _NAT_OF_A_VM or interface.link == "none":
        return Kind.TUN if interface.link == "none" else Kind.OTHER
    cloud = _CLOUD_ADDRESS.match(interface.mac or "") or interface.mtu in _CLOUD_MTU
    return Kind.CLOUD if cloud and re.match(r"e(?:th\d|n)", interface.name) else Kind.PHYSICAL
