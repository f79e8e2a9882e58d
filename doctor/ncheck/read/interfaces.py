"""The network interfaces in any tool's output: which tool it is, the interfaces, and the one for a job's data."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence

from ncheck.expression import expression
from ncheck.parse.capture import lines_of, plain_text
from ncheck.read.ifconfig import parse_ifconfig, parse_short
from ncheck.read.ip_address import parse_brief, parse_ip, parse_json
from ncheck.read.listed_interface import VIRTUAL, ListedInterface, class_of, has_docker_mac

# node05:3662915:3662915 [0] NCCL INFO Bootstrap : Using ibs110:192.168.99.105<0>
# NET/Socket : Using [0]enp161s0f0:116.188.201.172<0> [1]veth4d57c65:fe80::e120:c908:2324:1535%veth4d57c65<0>
_NCCL = expression(r"(?:Using (?:interface )?|\]|OOB )([A-Za-z][\w.\-]*):([0-9a-fA-FxX*:.]+(?:%[\w.\-]+)?)<\d+>")
_USABLE_STATES = ("UP", "UNKNOWN", None)
_V4 = expression(r"\d+\.\d+\.\d+\.\d+")


def parse_interfaces(text: str) -> tuple[str, list[ListedInterface]]:
    """Return the tool and its interfaces: ip_json, ip_addr, ip_link, ip_br, ifconfig_new, ifconfig_old,
    ifconfig_short or nccl_log. Raises ValueError for any other text.
    """
    lines = lines_of(text)
    plain = plain_text(text)
    if re.search(r'\[\s*\{\s*"(?:ifindex|ifname)"', plain):
        return "ip_json", _json(plain)
    if interfaces := parse_ip(lines):
        addresses = any(interface.has_address for interface in interfaces) or any("inet6 " in line for line in lines)
        return "ip_addr" if addresses else "ip_link", interfaces
    if interfaces := parse_ifconfig(lines):
        return "ifconfig_old" if any("Link encap:" in line for line in lines) else "ifconfig_new", interfaces
    if interfaces := parse_short(lines):
        return "ifconfig_short", interfaces
    if interfaces := parse_nccl(lines):
        return "nccl_log", interfaces
    if interfaces := parse_brief(lines):
        return "ip_br", interfaces
    raise ValueError("no interface found: not the output of ip or ifconfig, nor a log of NCCL")


def _json(text: str) -> list[ListedInterface]:
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the JSON output of `ip -j` is truncated or invalid: {error}") from error


def parse_nccl(lines: Sequence[str]) -> list[ListedInterface]:
    """Return the interfaces that NCCL's log names, each once."""
    interfaces: dict[str, ListedInterface] = {}
    for name, address in (match for line in lines for match in _NCCL.findall(line)):
        ipv4 = address if _V4.fullmatch(address) else None
        ipv6 = address.partition("%")[0] if ":" in address else None
        if name not in interfaces or (ipv4 and not interfaces[name].ipv4):
            interfaces[name] = ListedInterface(name, "UP", ipv4, has_address=ipv4 is not None, ipv6=ipv6)
    return list(interfaces.values())


def data_nic(listing: Sequence[ListedInterface]) -> str | None:
    """Return the interface for a job's data, or None if the listing does not decide it.

    Wired before wireless; InfiniBand before Ethernet, as in NCCL; a shared subnet before a /32; private addresses
    before public ones; then the larger MTU, then a bond. If no physical interface has an address, a bridge or the end
    of a veth pair that has one is used. Of two or three equal networks the first is taken, as NCCL does; four are
    rails, which decide nothing, nor do equal interfaces without addresses.
    """
    equal = equal_nics(listing)
    if equal:
        from_nccl = not equal[0].flags  # NCCL lists its own choice first
        shown = len(equal) == 1 or from_nccl or any(interface.has_address for interface in listing)
        return equal[0].name if shown and _networks(equal) < _RAILS else None
    classes = [(interface, class_of(interface, listing)) for interface in listing]
    return next((interface.master for interface, cls in classes if interface.master and cls == "bond_slave"), None)


def equal_nics(listing: Sequence[ListedInterface]) -> list[ListedInterface]:
    """Return the best interfaces for a job's data, in the order of the listing: none, one, or several equal ones."""
    classes = [(interface, class_of(interface, listing)) for interface in listing]
    addresses_shown = any(interface.has_address for interface in listing)
    up = [
        (interface, cls)
        for interface, cls in classes
        if interface.state in _USABLE_STATES and (interface.has_address or not addresses_shown)
    ]
    physical = [(interface, cls) for interface, cls in up if cls not in VIRTUAL]
    candidates = physical or [(interface, cls) for interface, cls in up if _leads_out(interface, cls)]
    if not candidates:
        return []
    best, cls = min(candidates, key=lambda candidate: _rank(*candidate))
    return [one for one, other in candidates if other == cls and _rank(one, other) == _rank(best, cls)]


_RAILS = 4


def _networks(interfaces: Sequence[ListedInterface]) -> int:
    """Return of how many networks the addresses are, as far as their prefixes show."""
    shown = (one for one in interfaces if one.prefix and _V4.fullmatch(one.ipv4 or ""))
    return len({ipaddress.ip_interface(f"{one.ipv4}/{one.prefix}").network for one in shown})


def used_by_nccl(listing: Sequence[ListedInterface]) -> list[ListedInterface]:
    """Return the interfaces that NCCL uses over TCP without any setting, by the rules in ncheck.nccl.choice.

    They are those of 2.28.3 and later: without virbr*, and without an interface that has no link.
    """
    up = [each for each in listing if each.state in _USABLE_STATES and "NO-CARRIER" not in each.flags]
    addressed = [each for each in up if (each.has_address or each.ipv6 not in (None, "::1"))]
    ib = [each for each in addressed if each.name.startswith("ib")]
    return ib or [each for each in addressed if not each.name.startswith(("docker", "lo", "virbr"))]


def _leads_out(interface: ListedInterface, cls: str) -> bool:
    """Return whether it is a bridge, or a container's own end of a veth pair, and has an address."""
    paired = interface.other_namespace or interface.linked_to is not None or has_docker_mac(interface)
    own_veth = cls == "container" and interface.master is None and paired
    return interface.has_address and (cls == "bridge" or own_veth)


def _rank(interface: ListedInterface, cls: str) -> tuple[bool, bool, bool, bool, int, bool]:
    ipv4 = interface.ipv4 or ""
    return (
        cls == "wifi",
        cls != "ib" and interface.link != "infiniband",
        interface.prefix == 32 or ipv4.startswith("169.254."),  # noqa: PLR2004  a routed rail, a BMC
        _is_public(ipv4),
        -(interface.mtu or 0),
        cls != "bond",
    )


def _is_public(ipv4: str) -> bool:
    try:
        return bool(ipv4) and ipaddress.IPv4Address(ipv4).is_global
    except ValueError:
        return False
