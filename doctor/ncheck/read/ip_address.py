"""`ip address` and `ip link`: the long, the brief, the one-line and the JSON form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

from ncheck.expression import expression
from ncheck.read.listed_interface import INET6, ListedInterface

# RFC 2863, ifOperStatus; part of a word, from a text that was cut off, is none of them.
_STATES = ("UP", "DOWN", "UNKNOWN", "LOWERLAYERDOWN", "DORMANT", "NOTPRESENT", "TESTING")

# 2: eth0@if10: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master cni0 state UP group default qlen 1000
_HEADING = expression(r"(?:^|\s)\d+: ([^\s:@]+)(?:@([^\s:]+))?:\s+<([A-Z0-9_,\-]*)>?(.*)$")

#     link/ether 02:42:0a:64:97:64 brd ff:ff:ff:ff:ff:ff link-netnsid 0
_LINK = expression(r"^\W*link/(\w+)(?:\s+([0-9a-f:]{17,}))?")

#     inet 10.0.10.138/24 brd 10.0.10.255 scope global dynamic noprefixroute enp6s0
_INET = expression(r"^\W*inet (\S+?)(?:/(\d+))?(?:\s|$)(.*)$")

#     inet 10.0.10.138/24 ... scope global dynamic noprefixroute enp6s0
_SCOPE = expression(r"\bscope \w+ (.*)")
_FLAG = expression(r"[a-z_]+")
_LABEL = expression(r"[A-Za-z][\w.\-]*(?::\w+)?")

# 2: eth0    inet 10.72.0.9/24 brd 10.72.0.255 scope global eth0
_ONE_LINE = expression(r"^\W*\d+: ([^\s:@]+)\s+inet6? (.*)$")

# "state UP mode DEFAULT group default qlen 256": as an e-mail wraps the first line
_WRAPPED = expression(rf"(?:^|\s)(?:master (\S+) )?state ({'|'.join(_STATES)})\b")

# enp1s0f0np0      UP             172.31.5.1/29
_BRIEF = expression(rf"^\s*([A-Za-z][\w.\-]*)(?:@(\S+))?\s+({'|'.join(_STATES)})(?:\s+(.*))?$")

# eno1             UP             e8:6a:64:11:22:33 <BROADCAST,MULTICAST,UP,LOWER_UP>
_BRIEF_FLAGS = expression(r"<([A-Z0-9_,\-]+)>")
_BRIEF_MAC = expression(r"(?<!\S)(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?::[0-9a-f]{2})*(?!\S)")

# 172.31.0.100/23
_V4 = expression(r"(?<![\w:.])(\d+\.\d+\.\d+\.\d+)(?:/(\d+))?")

# fe80::3eec:efff:fe00:10/64
_V6 = expression(r"(?<!\S)([0-9a-f]*:[0-9a-f:.]*)/\d+")
_NOT_A_LABEL = frozenset({"dynamic", "noprefixroute", "secondary", "deprecated", "tentative", "temporary", "global"})


def parse_ip(lines: Sequence[str]) -> list[ListedInterface]:
    """Read `ip address` or `ip link`. A name replaced by "user@node" is taken from the label of its address."""
    interfaces: list[ListedInterface] = []
    for line in (part for whole in lines for part in re.split(r"\\\s+", whole)):  # ip -o joins lines by a backslash
        if heading := _HEADING.search(line):
            interfaces.append(_from_heading(heading))
        elif entry := _ONE_LINE.match(line):
            if not interfaces or interfaces[-1].name != entry[1]:
                flags = frozenset({"LOOPBACK"} if entry[1] == "lo" else ())
                interfaces.append(ListedInterface(entry[1], flags=flags))
            interfaces[-1] = _with_line(interfaces[-1], line[line.index("inet") :])
        elif interfaces:
            interfaces[-1] = _with_line(interfaces[-1], line)
    return interfaces


def _from_heading(heading: re.Match[str]) -> ListedInterface:
    values = dict(pairwise(heading[4].split()))  # "mtu 1500 qdisc noqueue": a word to the one after it
    state, hidden = values.get("state"), (heading[1], heading[2]) == ("user", "node")
    return ListedInterface(
        name="user@node" if hidden else heading[1],
        state=state if state in _STATES else None,
        mtu=int(values["mtu"]) if values.get("mtu", "").isdigit() else None,
        flags=frozenset(heading[3].split(",")),
        master=values.get("master"),
        linked_to=heading[2],
        name_shown=not hidden,
    )


def _with_line(interface: ListedInterface, line: str) -> ListedInterface:
    if link := _LINK.match(line):
        return replace(interface, link=link[1], mac=link[2], other_namespace="link-netns" in line, details=line)
    if inet := _INET.match(line):
        return _with_address(interface, inet)
    if inet6 := INET6.search(line):
        return replace(interface, ipv6=interface.ipv6 or inet6[1])
    if re.match(r"^\W*(?:altname|valid_lft|vf \d+)\b", line):  # "    altname enp50s0f0", "    vf 0 MAC ..."
        return interface
    if interface.state is None and (wrapped := _WRAPPED.search(line)):
        return replace(interface, master=wrapped[1] or interface.master, state=wrapped[2])
    return replace(interface, details=f"{interface.details} {line.strip()}")


def _label(rest: str) -> str:
    """Return the last word of an address's line, which may be the interface: only flags stand between."""
    scope = _SCOPE.search(rest)
    words = scope[1].partition(" #")[0].split() if scope else []
    named = words and _LABEL.fullmatch(words[-1]) and all(map(_FLAG.fullmatch, words[:-1]))
    return words[-1] if named else ""


def _with_address(interface: ListedInterface, inet: re.Match[str]) -> ListedInterface:
    label = _label(inet[3])
    if not interface.name_shown and label and label not in _NOT_A_LABEL:
        interface = replace(interface, name=label, name_shown=True)
    interface = replace(interface, has_address=True)
    if interface.ipv4 or not _V4.fullmatch(inet[1]):
        return interface
    return replace(interface, ipv4=inet[1], prefix=int(inet[2]) if inet[2] else None)


def parse_brief(lines: Sequence[str]) -> list[ListedInterface]:
    """Read `ip -br address` or `ip -br link`."""
    rows = (found for line in lines if (found := _BRIEF.match(line)))
    return [_brief(row) for row in rows]


def _brief(row: re.Match[str]) -> ListedInterface:
    address, six = _V4.search(row[4] or ""), _V6.search(row[4] or "")
    flags, mac = _BRIEF_FLAGS.search(row[4] or ""), _BRIEF_MAC.search(row[4] or "")
    return ListedInterface(
        name=row[1],
        state=row[3],
        ipv4=address[1] if address else None,
        prefix=int(address[2]) if address and address[2] else None,
        linked_to=row[2],
        flags=frozenset(flags[1].split(",") if flags else {"LOOPBACK"} if row[1] == "lo" else ()),
        link="infiniband" if mac and len(mac[0]) > len("00:00:00:00:00:00") else None,
        mac=mac[0] if mac else None,
        has_address=address is not None,
        ipv6=six[1] if six else None,
    )


def parse_json(text: str) -> list[ListedInterface]:
    """Read `ip -j address` or `ip -j -d link`. Raises ValueError if the JSON is broken."""
    start = re.search(r"\[\s*\{", text)
    links, _ = json.JSONDecoder().raw_decode(text[start.start() :]) if start else ([], 0)
    return [_from_json(link) for link in cast("list[Mapping[str, object]]", links) if link.get("ifname")]


def _from_json(link: Mapping[str, object]) -> ListedInterface:
    addresses = cast("list[Mapping[str, object]]", link.get("addr_info") or [])
    first = next((address for address in addresses if address.get("family") == "inet"), {})
    six = next((address for address in addresses if address.get("family") == "inet6"), {})
    info = cast("Mapping[str, object]", link.get("linkinfo") or {})
    mtu = link.get("mtu")
    return ListedInterface(
        name=str(link["ifname"]),
        state=cast("str | None", link.get("operstate")),
        ipv4=cast("str | None", first.get("local")),
        prefix=cast("int | None", first.get("prefixlen")),
        mtu=mtu if isinstance(mtu, int) else None,
        flags=frozenset(str(flag) for flag in cast("list[object]", link.get("flags") or [])),
        link=cast("str | None", link.get("link_type")),
        mac=cast("str | None", link.get("address")),
        master=cast("str | None", link.get("master")),
        linked_to=cast("str | None", link.get("link")),
        other_namespace="link_netnsid" in link or "link_netns" in link,
        details=str(info.get("info_kind") or ""),
        has_address=bool(first),
        ipv6=cast("str | None", six.get("local")),
    )
