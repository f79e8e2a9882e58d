"""An interface as some pasted text shows it, and what can be told of it from there alone.

A paste has no sysfs: flags, link type, what stands behind the @, names and hardware addresses must do.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

from ncheck.parse.capture import lines_of, plain_text
from ncheck.parse.interface_names import Kind, kind_by_name

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


# RFC 2863, ifOperStatus; a text cut off in the middle of one of them tells none.
_STATES = ("UP", "DOWN", "UNKNOWN", "LOWERLAYERDOWN", "DORMANT", "NOTPRESENT", "TESTING")


# 2: eth0@if10: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master cni0 state UP group default qlen 1000
_HEAD = re.compile(r"(?:^|\s)\d+: ([^\s:@]+)(?:@([^\s:]+))?:\s+<([A-Z0-9_,\-]*)>?(.*)$")


#     link/ether 02:42:0a:64:97:64 brd ff:ff:ff:ff:ff:ff link-netnsid 0
_LINK = re.compile(r"^\W*link/(\w+)(?:\s+([0-9a-f:]{17,}))?")


#     inet 10.0.10.138/24 brd 10.0.10.255 scope global dynamic noprefixroute enp6s0
_INET = re.compile(r"^\W*inet (\S+?)(?:/(\d+))?(?:\s|$)(.*)$")


#     inet 10.0.10.138/24 ... scope global dynamic noprefixroute enp6s0
_LABEL = re.compile(r"\bscope \w+ (?:[a-z_]+ )*?([A-Za-z][\w.\-]*(?::\w+)?)(?:\s+#.*)?\s*$")


# 2: eth0    inet 10.72.0.9/24 brd 10.72.0.255 scope global eth0
_ONE_LINE = re.compile(r"^\W*\d+: ([^\s:@]+)\s+inet6? (.*)$")


# "state UP mode DEFAULT group default qlen 256": a mail wraps the first line
_WRAPPED = re.compile(rf"(?:^|\s)(?:master (\S+) )?state ({'|'.join(_STATES)})\b")


# enp1s0f0np0      UP             172.31.5.1/29
_BRIEF = re.compile(rf"^\s*([A-Za-z][\w.\-]*)(?:@(\S+))?\s+({'|'.join(_STATES)})(?:\s+(.*))?$")


# eno1             UP             e8:6a:64:11:22:33 <BROADCAST,MULTICAST,UP,LOWER_UP>
_BRIEF_FLAGS = re.compile(r"<([A-Z0-9_,\-]+)>")


_BRIEF_MAC = re.compile(r"(?<!\S)(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?::[0-9a-f]{2})*(?!\S)")


# 172.31.0.100/23
_V4 = re.compile(r"(?<![\w:.])(\d+\.\d+\.\d+\.\d+)(?:/(\d+))?")


_NOT_A_LABEL = frozenset({"dynamic", "noprefixroute", "secondary", "deprecated", "tentative", "temporary", "global"})


def parse_ip(lines: Sequence[str]) -> list[Seen]:
    """Read `ip address` or `ip link`. A name that an author replaced by user@host is taken from its address's label."""
    found: list[Seen] = []
    for line in (part for whole in lines for part in re.split(r"\\\s+", whole)):  # ip -o joins lines by a backslash
        if head := _HEAD.search(line):
            found.append(_begun(head))
        elif one := _ONE_LINE.match(line):
            if not found or found[-1].name != one[1]:
                flags = frozenset({"LOOPBACK"} if one[1] == "lo" else ())
                found.append(Seen(one[1], flags=flags))
            found[-1] = _gone_on(found[-1], line[line.index("inet") :])
        elif found:
            found[-1] = _gone_on(found[-1], line)
    return found


def _begun(head: re.Match[str]) -> Seen:
    words = head[4].split()
    after = dict(pairwise(words))
    behind, hidden = head[2], (head[1], head[2]) == ("user", "node")
    return Seen(
        name="user@node" if hidden else head[1],
        state=state if (state := after.get("state")) in _STATES else None,
        mtu=int(after["mtu"]) if after.get("mtu", "").isdigit() else None,
        flags=frozenset(head[3].split(",")),
        master=after.get("master"),
        behind=behind,
        named=not hidden,
    )


def _gone_on(seen: Seen, line: str) -> Seen:
    if link := _LINK.match(line):
        return replace(seen, link=link[1], mac=link[2], other_namespace="link-netns" in line, details=line)
    if inet := _INET.match(line):
        return _with_address(seen, inet)
    if re.match(r"^\W*(?:altname|inet6|valid_lft|vf \d+)\b", line):  # "    altname enp50s0f0", "    vf 0 MAC ..."
        return seen
    if seen.state is None and (wrapped := _WRAPPED.search(line)):
        return replace(seen, master=wrapped[1] or seen.master, state=wrapped[2])
    return replace(seen, details=f"{seen.details} {line.strip()}")


def _with_address(seen: Seen, inet: re.Match[str]) -> Seen:
    label = _LABEL.search(inet[3])
    if not seen.named and label and label[1] not in _NOT_A_LABEL:
        seen = replace(seen, name=label[1], named=True)
    seen = replace(seen, addressed=True)
    if seen.ipv4 or not _V4.fullmatch(inet[1]):
        return seen
    return replace(seen, ipv4=inet[1], prefix=int(inet[2]) if inet[2] else None)


def parse_brief(lines: Sequence[str]) -> list[Seen]:
    """Read `ip -br address` or `ip -br link`."""
    rows = (found for line in lines if (found := _BRIEF.match(line)))
    return [_brief(row) for row in rows]


def _brief(row: re.Match[str]) -> Seen:
    address = _V4.search(row[4] or "")
    flags, mac = _BRIEF_FLAGS.search(row[4] or ""), _BRIEF_MAC.search(row[4] or "")
    return Seen(
        name=row[1],
        state=row[3],
        ipv4=address[1] if address else None,
        prefix=int(address[2]) if address and address[2] else None,
        behind=row[2],
        flags=frozenset(flags[1].split(",") if flags else {"LOOPBACK"} if row[1] == "lo" else ()),
        link="infiniband" if mac and len(mac[0]) > len("00:00:00:00:00:00") else None,
        mac=mac[0] if mac else None,
        addressed=address is not None,
    )


def parse_json(text: str) -> list[Seen]:
    """Read `ip -j address` or `ip -j -d link`. Raises ValueError for what is no such JSON."""
    start = re.search(r"\[\s*\{", text)
    links, _ = json.JSONDecoder().raw_decode(text[start.start() :]) if start else ([], 0)
    return [_from_json(link) for link in cast("list[Mapping[str, object]]", links) if link.get("ifname")]


def _from_json(link: Mapping[str, object]) -> Seen:
    addresses = cast("list[Mapping[str, object]]", link.get("addr_info") or [])
    first = next((one for one in addresses if one.get("family") == "inet"), {})
    info = cast("Mapping[str, object]", link.get("linkinfo") or {})
    mtu = link.get("mtu")
    return Seen(
        name=str(link["ifname"]),
        state=cast("str | None", link.get("operstate")),
        ipv4=cast("str | None", first.get("local")),
        prefix=cast("int | None", first.get("prefixlen")),
        mtu=mtu if isinstance(mtu, int) else None,
        flags=frozenset(str(flag) for flag in cast("list[object]", link.get("flags") or [])),
        link=cast("str | None", link.get("link_type")),
        mac=cast("str | None", link.get("address")),
        master=cast("str | None", link.get("master")),
        behind=cast("str | None", link.get("link")),
        other_namespace="link_netnsid" in link or "link_netns" in link,
        details=str(info.get("info_kind") or ""),
        addressed=bool(first),
    )


# eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1460
# + ifconfigdata='cilium_host: flags=4291<UP,BROADCAST,RUNNING,NOARP,MULTICAST>  mtu 1500
_NEW = re.compile(r"(?:^|[\s'\"`])([A-Za-z][\w.\-]*(?::\d+)?): flags=\d+<([A-Z0-9_,]*)>(?:.*?mtu (\d+))?")


# enp159s0  Link encap:Ethernet  HWaddr ec:0d:b8:2d:cb:03
# sit0      Link encap:IPv6-in-IPv4
# ib0       Link encap:InfiniBand  HWaddr
_OLD = re.compile(
    r"(?:^|[\s'\"`])([A-Za-z][\w.\-]*(?::\d+)?)\s+Link encap:(\S+(?: \S+)*?)(?:\s+HWaddr(?: (\S+))?)?\s*(?:#.*)?$"
)


#         inet 10.72.0.9  netmask 255.255.255.0  broadcast 10.72.0.255
#           inet addr:172.19.160.6  Bcast:172.19.175.255  Mask:255.255.240.0
_IFCONFIG_INET = re.compile(r"\binet (?:addr:)?\s*(\S+)(?:.*?(?:netmask |Mask:)(\S+))?")


#         infiniband 80:00:02:08:FE:80:00:00:00:00:00:00:00:00:00:00:00:00:00:00  txqueuelen 256  (InfiniBand)
_HARDWARE = re.compile(r"^\W*(ether|infiniband|loop|unspec|tunnel|sit)\b\s*([0-9A-Fa-f:\-]{17,})?")


#           UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1
_OLD_FLAG = re.compile(
    r"(?:^|(?<=\s))(?:UP|BROADCAST|LOOPBACK|POINTOPOINT|RUNNING|NOARP|PROMISC|ALLMULTI|MULTICAST|MASTER|SLAVE|DYNAMIC)(?!\S)"
)


_OLD_MTU = re.compile(r"(?:^|\s)MTU:(\d+)")


# ib0              2044     7267      0      0 0             7      0      0      0 BMsRU
_SHORT = re.compile(r"^\s*([A-Za-z][\w.\-]*(?::\d+)?)\s+(\d+)(?:\s+\d+){8,9}\s+([A-Zms]+)\s*$")


_SHORT_HEAD = re.compile(r"^\s*Iface\s+MTU\s")


# Flg of `ifconfig -s` and `netstat -i`: net-tools, statistics.c
_SHORT_FLAGS = {"B": "BROADCAST", "L": "LOOPBACK", "M": "MULTICAST", "m": "MASTER", "s": "SLAVE", "P": "POINTOPOINT",
                "R": "RUNNING", "U": "UP"}  # fmt: skip


_IFCONFIG_LINK = {
    "ether": "ether", "infiniband": "infiniband", "loop": "loopback", "unspec": "none", "ethernet": "ether",
         "local loopback": "loopback"}  # fmt: skip


# unspec 80-00-02-08-FE-80-00-00-00-00-00-00-00-00-00-00: IP over InfiniBand, to an ifconfig that knows no such link
_IPOIB = re.compile(r"[0-9a-f]{2}-00-[0-9a-f]{2}-[0-9a-f]{2}-fe-80-")


def parse_ifconfig(lines: Sequence[str]) -> list[Seen]:
    """Return the interfaces; ifconfig tells no operational state: UP is the administrative one."""
    found: list[Seen] = []
    for line in lines:
        if head := _NEW.search(line):
            flags = frozenset(head[2].split(","))
            found.append(Seen(head[1], _state(flags), mtu=int(head[3]) if head[3] else None, flags=flags))
        elif head := _OLD.search(line):
            mac = (head[3] or "").lower()
            found.append(Seen(head[1], link=_link(head[2], mac), mac=mac or None))
        elif found:
            found[-1] = _ifconfig_gone_on(found[-1], line)
    return found


def parse_short(lines: Sequence[str]) -> list[Seen]:
    """Read the table of `ifconfig -s` or `netstat -i`, which knows no addresses."""
    if not any(_SHORT_HEAD.match(line) for line in lines):
        return []
    return [_short(row) for line in lines if (row := _SHORT.match(line))]


def _short(row: re.Match[str]) -> Seen:
    flags = frozenset(_SHORT_FLAGS[letter] for letter in row[3] if letter in _SHORT_FLAGS)
    return Seen(row[1], _state(flags), mtu=int(row[2]), flags=flags)


def _state(flags: frozenset[str]) -> str:
    return "UP" if "UP" in flags else "DOWN"


def _link(word: str, mac: str) -> str | None:
    return "infiniband" if _IPOIB.match(mac) else _IFCONFIG_LINK.get(word.lower())


def _ifconfig_gone_on(seen: Seen, line: str) -> Seen:
    flags, mtu = _OLD_FLAG.findall(line), _OLD_MTU.search(line)
    if mtu or len(flags) > 1:  # a mail may have wrapped the line between them
        words = seen.flags.union(flags)
        return replace(seen, flags=words, state=_state(words), mtu=int(mtu[1]) if mtu else seen.mtu)
    if hardware := _HARDWARE.match(line):
        mac = (hardware[2] or "").lower()
        return replace(seen, link=_link(hardware[1], mac) or seen.link, mac=mac or seen.mac)
    if (inet := _IFCONFIG_INET.search(line)) and not seen.addressed:
        return _ifconfig_with_address(replace(seen, addressed=True), inet[1], inet[2])
    return seen


def _ifconfig_with_address(seen: Seen, address: str, mask: str | None) -> Seen:
    """Add the address; one that an author masked ("*.*.*.*") is there and not known."""
    try:
        ipv4 = str(ipaddress.IPv4Address(address))
    except ValueError:
        return seen
    return replace(seen, ipv4=ipv4, prefix=_prefix(mask or ""))


def _prefix(mask: str) -> int | None:
    """Return the length of 255.255.240.0 or, as BSD writes it, 0xfffff000."""
    try:
        number = int(mask, 16) if mask.startswith("0x") else int(ipaddress.IPv4Address(mask))
    except ValueError:
        return None
    return number.bit_count()


# node05:3662915:3662915 [0] NCCL INFO Bootstrap : Using ibs110:192.168.99.105<0>
# NET/Socket : Using [0]enp161s0f0:116.188.201.172<0> [1]veth4d57c65:fe80::e120:c908:2324:1535%veth4d57c65<0>
_NCCL = re.compile(r"(?:Using (?:interface )?|\]|OOB )([A-Za-z][\w.\-]*):([0-9a-fA-FxX*:.]+(?:%[\w.\-]+)?)<\d+>")


_MAY_CARRY = ("UP", "UNKNOWN", None)


_INTERFACES_TEXT_V4 = re.compile(r"\d+\.\d+\.\d+\.\d+")


def parse_interfaces(text: str) -> tuple[str, list[Seen]]:
    """Return which tool speaks and what it shows: ip_json, ip_addr, ip_link, ip_br, ifconfig_new, ifconfig_old,
    ifconfig_short or nccl_log. Raises ValueError for a text that is none of them.
    """
    lines = lines_of(text)
    plain = plain_text(text)
    if re.search(r'\[\s*\{\s*"(?:ifindex|ifname)"', plain):
        return "ip_json", _json(plain)
    if found := parse_ip(lines):
        addressed = any(one.addressed for one in found) or any("inet6 " in line for line in lines)
        return "ip_addr" if addressed else "ip_link", found
    if found := parse_ifconfig(lines):
        return "ifconfig_old" if any("Link encap:" in line for line in lines) else "ifconfig_new", found
    if found := parse_short(lines):
        return "ifconfig_short", found
    if found := parse_nccl(lines):
        return "nccl_log", found
    if found := parse_brief(lines):
        return "ip_br", found
    raise ValueError("no interface in it: neither ip's words, nor ifconfig's, nor NCCL's")


def _json(text: str) -> list[Seen]:
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the JSON of `ip -j` is cut off or broken: {error}") from error


def parse_nccl(lines: Sequence[str]) -> list[Seen]:
    """Return the interfaces that NCCL says it uses, each once."""
    found: dict[str, Seen] = {}
    for name, address in (match for line in lines for match in _NCCL.findall(line)):
        v4 = address if _INTERFACES_TEXT_V4.fullmatch(address) else None
        if name not in found or (v4 and not found[name].ipv4):
            found[name] = Seen(name, "UP", v4, addressed=v4 is not None)
    return list(found.values())


def data_nic(everyone: Sequence[Seen]) -> str | None:
    """Return the interface for a job's data, or None where the text does not decide.

    Wires before radio; InfiniBand before Ethernet, as NCCL itself looks; a shared subnet before a /32; a private one
    before a public one; larger frames, then a bond, first. Where no real wire bears an address, the end of a veth
    pair, or a bridge, that does is the way out. A listing without addresses decides only where one is the best.
    """
    classed = [(one, class_of(one, everyone)) for one in everyone]
    known = any(one.addressed for one in everyone)
    up = [(one, kind) for one, kind in classed if one.state in _MAY_CARRY and (one.addressed or not known)]
    wires = [(one, kind) for one, kind in up if kind not in VIRTUAL]
    stand_ins = [(one, kind) for one, kind in up if one.addressed and (kind == "bridge" or _own_veth(one, kind))]
    if chosen := wires or stand_ins:
        best, equals = _best(chosen)
        return best.name if known or equals == 1 or not best.flags else None  # NCCL lists its own choice first
    return next((one.master for one, kind in classed if one.master and kind == "bond_slave"), None)


def _best(chosen: Sequence[tuple[Seen, str]]) -> tuple[Seen, int]:
    """Return the first of the best, and how many of its kind are as good."""
    best, kind = min(chosen, key=lambda pair: _rank(*pair))
    return best, sum(other == kind and _rank(one, other) == _rank(best, kind) for one, other in chosen)


def _own_veth(one: Seen, kind: str) -> bool:
    """Tell the container's own end, which hangs on no bridge of this namespace, from a pod's."""
    paired = one.other_namespace or one.behind is not None or is_dockers(one)
    return kind == "container" and one.master is None and paired


def _rank(one: Seen, kind: str) -> tuple[bool, bool, bool, bool, int, bool]:
    lonely = one.prefix == 32 or (one.ipv4 or "").startswith("169.254.")  # noqa: PLR2004  a routed rail, a BMC
    return (
        kind == "wifi",
        kind != "ib" and one.link != "infiniband",
        lonely,
        _is_public(one.ipv4),
        -(one.mtu or 0),
        kind != "bond",
    )


def _is_public(ipv4: str | None) -> bool:
    try:
        return ipaddress.IPv4Address(ipv4).is_global if ipv4 else False
    except ValueError:
        return False
