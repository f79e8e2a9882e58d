"""ifconfig, old ("Link encap:Ethernet  HWaddr ...") and new ("flags=4163<UP,...>  mtu 1500")."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import replace

from doctor.parse.seen_interface import Seen

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
_INET = re.compile(r"\binet (?:addr:)?\s*(\S+)(?:.*?(?:netmask |Mask:)(\S+))?")
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

_LINK = {"ether": "ether", "infiniband": "infiniband", "loop": "loopback", "unspec": "none", "ethernet": "ether",
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
            found[-1] = _gone_on(found[-1], line)
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
    return "infiniband" if _IPOIB.match(mac) else _LINK.get(word.lower())


def _gone_on(seen: Seen, line: str) -> Seen:
    flags, mtu = _OLD_FLAG.findall(line), _OLD_MTU.search(line)
    if mtu or len(flags) > 1:  # a mail may have wrapped the line between them
        words = seen.flags.union(flags)
        return replace(seen, flags=words, state=_state(words), mtu=int(mtu[1]) if mtu else seen.mtu)
    if hardware := _HARDWARE.match(line):
        mac = (hardware[2] or "").lower()
        return replace(seen, link=_link(hardware[1], mac) or seen.link, mac=mac or seen.mac)
    if (inet := _INET.search(line)) and not seen.addressed:
        return _with_address(replace(seen, addressed=True), inet[1], inet[2])
    return seen


def _with_address(seen: Seen, address: str, mask: str | None) -> Seen:
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
