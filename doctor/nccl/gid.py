"""Where in a port's GID table RoCE v2 with an IPv4 address stands: what NCCL before 2.21 has to be told."""

from __future__ import annotations

from ipaddress import IPv6Address

from doctor.model.facts import HcaPort

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
