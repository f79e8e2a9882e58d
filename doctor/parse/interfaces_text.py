"""Interfaces from whatever shows them: ip, ifconfig or a log of NCCL, told apart by content, and the one for data."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence

from doctor.parse.capture import lines_of, plain_text
from doctor.parse.ifconfig import parse_ifconfig, parse_short
from doctor.parse.ip_address import parse_brief, parse_ip, parse_json
from doctor.parse.seen_interface import VIRTUAL, Seen, class_of, is_dockers

# node05:3662915:3662915 [0] NCCL INFO Bootstrap : Using ibs110:192.168.99.105<0>
# NET/Socket : Using [0]enp161s0f0:116.188.201.172<0> [1]veth4d57c65:fe80::e120:c908:2324:1535%veth4d57c65<0>
_NCCL = re.compile(r"(?:Using (?:interface )?|\]|OOB )([A-Za-z][\w.\-]*):([0-9a-fA-FxX*:.]+(?:%[\w.\-]+)?)<\d+>")
_MAY_CARRY = ("UP", "UNKNOWN", None)
_V4 = re.compile(r"\d+\.\d+\.\d+\.\d+")


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
        v4 = address if _V4.fullmatch(address) else None
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
