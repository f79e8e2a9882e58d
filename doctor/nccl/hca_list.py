"""NCCL_IB_HCA as NCCL reads it (NCCL source, net_ib/init.cc): ^ turns the list round, = makes its names exact."""

from __future__ import annotations

import re
from collections.abc import Iterable

from doctor.model.facts import HcaPort

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
