"""Where in a port's GID table RoCE v2 with an IPv4 address stands: what NCCL before 2.21 has to be told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv6Address

from ncheck.facts.infiniband import HcaPort

AUTOMATIC_GID = (2, 21)  # since then NCCL finds it by itself, unless NCCL_IB_GID_INDEX is set (its net_ib/connect.cc)


ROCE_V2 = "RoCE v2"


def ipv4_index(port: HcaPort) -> int | None:
    """Return the first index of RoCE v2 with an IPv4 address, None where the table shows none."""
    return next((gid.index for gid in port.gids if gid.kind == ROCE_V2 and _is_ipv4(gid.address)), None)


def _is_ipv4(address: str) -> bool:
    """Tell whether it is ::ffff:10.1.0.7 or the like. What is no address is none."""
    try:
        return IPv6Address(address).ipv4_mapped is not None
    except ValueError:
        return False


def gids_told(port: HcaPort) -> str:
    """Say where a port has the GID that is wanted."""
    index = ipv4_index(port)
    where = "is not seen" if index is None else f"is at {index}"
    return f"{port.name}: RoCE v2 with an IPv4 address {where}"


USED_LAYERS = frozenset({"InfiniBand", "Ethernet"})


def active(ports: Iterable[HcaPort]) -> tuple[HcaPort, ...]:
    """Return the ports that NCCL takes when nothing is set."""
    return tuple(port for port in ports if port.state == "Active" and port.link_layer in USED_LAYERS)


def taken(value: str, ports: Iterable[HcaPort]) -> tuple[HcaPort, ...]:
    """Return the Active ports that NCCL takes under a value; "" is no setting."""
    negated, rest = value.startswith("^"), value.removeprefix("^")
    exact, rest = rest.startswith("="), rest.removeprefix("=")
    entries = [tuple(entry.split(":")) for entry in rest.split(",") if entry]
    found = active(ports)
    if not entries:
        return found
    return tuple(port for port in found if any(_hit(one, port, exact=exact) for one in entries) != negated)


def _hit(entry: tuple[str, ...], port: HcaPort, *, exact: bool) -> bool:
    name = entry[0]
    numbered = entry[1] if len(entry) > 1 else ""
    return (port.hca == name if exact else port.hca.startswith(name)) and numbered in ("", str(port.port))


def listed(ports: Iterable[HcaPort]) -> str:
    """Return the value that takes exactly these ports: "=mlx5_0:1,mlx5_1:1"."""
    places = sorted({(port.hca, port.port) for port in ports}, key=lambda place: (_natural(place[0]), place[1]))
    return "=" + ",".join(f"{hca}:{number}" for hca, number in places)


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that puts mlx5_9 before mlx5_10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", name))
