"""An interface as some pasted text shows it, and what can be told of it from there alone.

A paste has no sysfs: flags, link type, what stands behind the @, names and hardware addresses must do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.model.facts import Kind
from doctor.parse.interface_names import kind_by_name

# What each kind is called in a capture's answer, and whether data may not leave there.
CLASS = {
    Kind.LOOPBACK: "loopback", Kind.PHYSICAL: "physical", Kind.CLOUD: "cloud", Kind.INFINIBAND: "ib", Kind.BOND: "bond",
    Kind.BOND_SLAVE: "bond_slave", Kind.VLAN: "vlan", Kind.BRIDGE: "bridge", Kind.WIFI: "wifi", Kind.VETH: "container",
    Kind.CONTAINER_BRIDGE: "container", Kind.OVERLAY: "overlay", Kind.TUN: "tunnel", Kind.OTHER: "virtual",
    Kind.MACVLAN: "virtual",
}  # fmt: skip
VIRTUAL = frozenset(
    {"loopback", "container", "overlay", "tunnel", "virtual", "alias", "unusable", "bond_slave", "bridge"}
)

# 42:01 is Google's, 00:0d:3a and its like Microsoft's, 00:16:3e Xen's and Alibaba's, fa:16:3e OpenStack's
_CLOUD_ADDRESS = re.compile(r"42:01|00:0d:3a|00:22:48|60:45:bd|7c:1e:52|7c:ed:8d|00:15:5d|00:16:3e|fa:16:3e")
_CLOUD_MTU = frozenset({1460, 9001})  # what Google's and Amazon's networks give out
_NAT_OF_A_VM = "10.0.2.15"  # the same on every guest: the user-mode NAT of VirtualBox and QEMU
_MODEM = re.compile(r"ww(?:an|p|s|x|u)")  # wwan0


@dataclass(frozen=True)
class Seen:
    """One interface of a capture; None is: not in the text.

    `behind` is what follows the @ of its name, `link` the link type ("ether", "infiniband"), `details` the words of
    `ip -d` (vlan, vxlan, tun ...), `addressed` whether it bears an address that a paste may have masked.
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
    behind: str | None = None
    other_namespace: bool = False
    details: str = ""
    addressed: bool = False
    named: bool = True  # False: the text hides the name, as an author's own edit did


def class_of(seen: Seen, everyone: Sequence[Seen]) -> str:
    """Return what it is: loopback, physical, cloud, ib, bond, bond_slave, vlan, bridge, wifi, container, overlay,
    tunnel, virtual, alias or unusable.
    """
    if re.fullmatch(r"\S+:\d+", seen.name):
        return "alias"
    if _MODEM.match(seen.name):
        return "unusable"
    return CLASS[_kind(seen, everyone)]


def _kind(seen: Seen, everyone: Sequence[Seen]) -> Kind:
    by_words = _by_words(seen)
    named = kind_by_name(seen.name) if seen.named else None
    if by_words in (Kind.LOOPBACK, Kind.INFINIBAND, Kind.BOND_SLAVE, Kind.BOND):
        return by_words
    if named in (Kind.CONTAINER_BRIDGE, Kind.OVERLAY):
        return _virsh(seen, named)
    return by_words or named or _paired(seen, everyone) or _plain(seen)


def _virsh(seen: Seen, named: Kind) -> Kind:
    """Tell libvirt's bridge, on which virtual machines hang, from a container engine's."""
    return Kind.OTHER if seen.name.startswith("virbr") else named


def _by_words(seen: Seen) -> Kind | None:
    """Tell by flags, link type and details: the tool's own words."""
    if "LOOPBACK" in seen.flags or seen.link == "loopback":
        return Kind.LOOPBACK
    if "SLAVE" in seen.flags or (seen.master and kind_by_name(seen.master) is Kind.BOND):
        return Kind.BOND_SLAVE
    if "MASTER" in seen.flags:
        return Kind.BOND
    if seen.link == "infiniband":
        return Kind.INFINIBAND
    found = re.search(
        r"\b(vlan|vxlan|geneve|macvlan|ipvlan|veth|tun|ipip|gre|wireguard|dummy|bridge)\b(?= |$)", seen.details
    )
    return _BY_DETAIL.get(found[1]) if found else None


_BY_DETAIL = {
    "vlan": Kind.VLAN, "vxlan": Kind.OVERLAY, "geneve": Kind.OVERLAY, "macvlan": Kind.MACVLAN, "ipvlan": Kind.MACVLAN,
    "veth": Kind.VETH, "ipip": Kind.TUN, "gre": Kind.TUN,
    "tun": Kind.TUN, "wireguard": Kind.TUN, "dummy": Kind.OTHER,
}  # fmt: skip


def _paired(seen: Seen, everyone: Sequence[Seen]) -> Kind | None:
    """Tell a veth's end, whose peer is in another namespace, from what lies on top of an interface of this one."""
    if seen.other_namespace or re.fullmatch(r"if\d+", seen.behind or "") or is_dockers(seen):
        return Kind.VETH
    below = any(seen.mac and other.mac == seen.mac and other.name != seen.name for other in everyone)
    if seen.behind and below:
        return Kind.VLAN
    return None


def is_dockers(seen: Seen) -> bool:
    """Tell a container's own end by the hardware address that Docker makes of its IP address: 02:42:ac:11:00:02."""
    octets = [f"{int(octet):02x}" for octet in (seen.ipv4 or "").split(".") if octet.isdigit()]
    return seen.mac == ":".join(("02", "42", *octets))


def _plain(seen: Seen) -> Kind:
    if seen.ipv4 == _NAT_OF_A_VM or seen.link == "none":
        return Kind.TUN if seen.link == "none" else Kind.OTHER
    if re.match(r"e(?:th\d|n)", seen.name) and (_CLOUD_ADDRESS.match(seen.mac or "") or seen.mtu in _CLOUD_MTU):
        return Kind.CLOUD
    return Kind.PHYSICAL
