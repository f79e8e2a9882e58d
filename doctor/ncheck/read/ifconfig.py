"""ifconfig: the form of net-tools 2, the older one, and the table of `ifconfig -s` and `netstat -i`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import replace

from ncheck.expression import expression
from ncheck.read.listed_interface import INET6, ListedInterface

# eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1460
# + ifconfigdata='cilium_host: flags=4291<UP,BROADCAST,RUNNING,NOARP,MULTICAST>  mtu 1500
_NEW = expression(r"(?:^|[\s'\"`])([A-Za-z][\w.\-]*(?::\d+)?): flags=\d+<([A-Z0-9_,]*)>(?:.*?mtu (\d+))?")

# enp159s0  Link encap:Ethernet  HWaddr ec:0d:b8:2d:cb:03
# sit0      Link encap:IPv6-in-IPv4
# ib0       Link encap:InfiniBand  HWaddr
_OLD = expression(
    r"(?:^|[\s'\"`])([A-Za-z][\w.\-]*(?::\d+)?)\s+Link encap:(\S+(?: \S+)*?)(?:\s+HWaddr(?: (\S+))?)?\s*(?:#.*)?$"
)

#         inet 10.72.0.9  netmask 255.255.255.0  broadcast 10.72.0.255
#           inet addr:172.19.160.6  Bcast:172.19.175.255  Mask:255.255.240.0
_INET = expression(r"\binet (?:addr:)?\s*(\S+)(?:.*?(?:netmask |Mask:)(\S+))?")

#         infiniband 80:00:02:08:FE:80:00:00:00:00:00:00:00:00:00:00:00:00:00:00  txqueuelen 256  (InfiniBand)
_HARDWARE = expression(r"^\W*(ether|infiniband|loop|unspec|tunnel|sit)\b\s*([0-9A-Fa-f:\-]{17,})?")

#           UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1
_OLD_FLAG = expression(
    r"(?:^|(?<=\s))(?:UP|BROADCAST|LOOPBACK|POINTOPOINT|RUNNING|NOARP|PROMISC|ALLMULTI|MULTICAST|MASTER|SLAVE|DYNAMIC)(?!\S)"
)

_OLD_MTU = expression(r"(?:^|\s)MTU:(\d+)")

# ib0              2044     7267      0      0 0             7      0      0      0 BMsRU
_SHORT = expression(r"^\s*([A-Za-z][\w.\-]*(?::\d+)?)\s+(\d+)(?:\s+\d+){8,9}\s+([A-Zms]+)\s*$")
_SHORT_HEADING = expression(r"^\s*Iface\s+MTU\s")

# Flg of `ifconfig -s` and `netstat -i`: net-tools, statistics.c
_SHORT_FLAGS = {"B": "BROADCAST", "L": "LOOPBACK", "M": "MULTICAST", "m": "MASTER", "s": "SLAVE", "P": "POINTOPOINT",
                "R": "RUNNING", "U": "UP"}  # fmt: skip

_LINK_TYPES = {
    "ether": "ether", "infiniband": "infiniband", "loop": "loopback", "unspec": "none", "ethernet": "ether",
    "local loopback": "loopback",
}  # fmt: skip

# unspec 80-00-02-08-FE-80-00-00-00-00-00-00-00-00-00-00: IP over InfiniBand, as an older ifconfig prints it
_IPOIB = expression(r"[0-9a-f]{2}-00-[0-9a-f]{2}-[0-9a-f]{2}-fe-80-")


def parse_ifconfig(lines: Sequence[str]) -> list[ListedInterface]:
    """Return the interfaces. UP is the administrative state: ifconfig does not print the operational one."""
    interfaces: list[ListedInterface] = []
    for line in lines:
        if heading := _NEW.search(line):
            flags = frozenset(heading[2].split(","))
            mtu = int(heading[3]) if heading[3] else None
            interfaces.append(ListedInterface(heading[1], _state(flags), mtu=mtu, flags=flags))
        elif heading := _OLD.search(line):
            mac = (heading[3] or "").lower()
            interfaces.append(ListedInterface(heading[1], link=_link_type(heading[2], mac), mac=mac or None))
        elif interfaces:
            interfaces[-1] = _with_line(interfaces[-1], line)
    return interfaces


def parse_short(lines: Sequence[str]) -> list[ListedInterface]:
    """Read the table of `ifconfig -s` or `netstat -i`, which has no addresses."""
    if not any(_SHORT_HEADING.match(line) for line in lines):
        return []
    return [_short(row) for line in lines if (row := _SHORT.match(line))]


def _short(row: re.Match[str]) -> ListedInterface:
    flags = frozenset(_SHORT_FLAGS[letter] for letter in row[3] if letter in _SHORT_FLAGS)
    return ListedInterface(row[1], _state(flags), mtu=int(row[2]), flags=flags)


def _state(flags: frozenset[str]) -> str:
    return "UP" if "UP" in flags else "DOWN"


def _link_type(word: str, mac: str) -> str | None:
    return "infiniband" if _IPOIB.match(mac) else _LINK_TYPES.get(word.lower())


def _with_line(interface: ListedInterface, line: str) -> ListedInterface:
    flags, mtu = _OLD_FLAG.findall(line), _OLD_MTU.search(line)
    if mtu or len(flags) > 1:  # an e-mail may have wrapped the line between them
        all_flags = interface.flags.union(flags)
        return replace(interface, flags=all_flags, state=_state(all_flags), mtu=int(mtu[1]) if mtu else interface.mtu)
    if hardware := _HARDWARE.match(line):
        mac = (hardware[2] or "").lower()
        return replace(interface, link=_link_type(hardware[1], mac) or interface.link, mac=mac or interface.mac)
    if inet6 := INET6.search(line):
        interface = replace(interface, ipv6=interface.ipv6 or inet6[1])
    if (inet := _INET.search(line)) and not interface.has_address:
        return _with_address(replace(interface, has_address=True), inet[1], inet[2])
    return interface


def _with_address(interface: ListedInterface, address: str, mask: str | None) -> ListedInterface:
    """Add the address. One that an author has masked ("*.*.*.*") is present but unknown."""
    try:
        ipv4 = str(ipaddress.IPv4Address(address))
    except ValueError:
        return interface
    return replace(interface, ipv4=ipv4, prefix=_prefix(mask or ""))


def _prefix(mask: str) -> int | None:
    """Return the prefix length of 255.255.240.0 or, in the form of BSD, 0xfffff000."""
    try:
        number = int(mask, 16) if mask.startswith("0x") else int(ipaddress.IPv4Address(mask))
    except ValueError:
        return None
    return number.bit_count()
