"""Which HCA ports NCCL uses, and which entry of a port's GID table is RoCE v2 with an IPv4 address."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv6Address

from ncheck.facts.infiniband import HcaPort

AUTOMATIC_GID = (2, 21)  # since then NCCL finds the entry itself, unless NCCL_IB_GID_INDEX is set (net_ib/connect.cc)

ROCE_V2 = "RoCE v2"

USED_LAYERS = frozenset({"InfiniBand", "Ethernet"})


def ipv4_index(port: HcaPort) -> int | None:
    """Return the first index of RoCE v2 with an IPv4 address; None if the table has none."""
    return next((gid.index for gid in port.gids if gid.kind == ROCE_V2 and _is_ipv4(gid.address)), None)


def _is_ipv4(address: str) -> bool:
    """Return whether the address is ::ffff:10.1.0.7 or similar."""
    try:
        return IPv6Address(address).ipv4_mapped is not None
    except ValueError:
        return False


def gid_position(port: HcaPort) -> str:
    """Return a sentence on where the port has the wanted GID."""
    index = ipv4_index(port)
    where = "not found" if index is None else f"at index {index}"
    return f"{port.name}: RoCE v2 with an IPv4 address {where}"


def active(ports: Iterable[HcaPort]) -> tuple[HcaPort, ...]:
    """Return the ports that NCCL uses by default."""
    return tuple(port for port in ports if port.state == "Active" and port.link_layer in USED_LAYERS)


def selected(value: str, ports: Iterable[HcaPort]) -> tuple[HcaPort, ...]:
    """Return the Active ports that NCCL uses with this NCCL_IB_HCA; "" is unset.

    "^" excludes what the list matches, "=" makes its names exact (NCCL source, net_ib/init.cc).
    """
    negated, rest = value.startswith("^"), value.removeprefix("^")
    exact, rest = rest.startswith("="), rest.removeprefix("=")
    entries = [tuple(entry.split(":")) for entry in rest.split(",") if entry]
    usable = active(ports)
    if not entries:
        return usable
    return tuple(port for port in usable if any(_matches(entry, port, exact=exact) for entry in entries) != negated)


def _matches(entry: tuple[str, ...], port: HcaPort, *, exact: bool) -> bool:
    name = entry[0]
    number = entry[1] if len(entry) > 1 else ""
    return (port.hca == name if exact else port.hca.startswith(name)) and number in ("", str(port.port))


def value_for(ports: Iterable[HcaPort]) -> str:
    """Return the NCCL_IB_HCA that selects exactly these ports: "=mlx5_0:1,mlx5_1:1"."""
    places = sorted({(port.hca, port.port) for port in ports}, key=lambda place: (_natural(place[0]), place[1]))
    return "=" + ",".join(f"{hca}:{number}" for hca, number in places)


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts mlx5_9 before mlx5_10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", name))
