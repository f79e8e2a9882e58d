"""Which HCA ports NCCL uses, and which entry of a port's GID table is RoCE v2 with an IPv4 address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv6Address

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import EFA, Gid, HcaPort, InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.model.cluster import Cluster, NodeView
from ncheck.nccl.settings import settings_of

AUTOMATIC_GID = (2, 21)  # since then NCCL finds the entry itself, unless NCCL_IB_GID_INDEX is set (net_ib/connect.cc)

ROCE_V2 = "RoCE v2"

USED_LAYERS = frozenset({"InfiniBand", "Ethernet"})


def ipv4_index(port: HcaPort) -> int | None:
    """Return the first index of RoCE v2 with an IPv4 address; None if the table has none."""
    return next((gid.index for gid, _ in ipv4_gids(port.gids)), None)


def ipv4_gids(gids: Iterable[Gid]) -> Iterator[tuple[Gid, str]]:
    """Yield the entries of RoCE v2 with an IPv4 address, and that address; NCCL takes the first (net_ib/connect.cc)."""
    for gid in gids:
        if gid.kind == ROCE_V2 and (address := _ipv4_in(gid.address)):
            yield gid, address


def _ipv4_in(address: str) -> str:
    """Return 10.1.0.7 for ::ffff:10.1.0.7, and "" for anything else."""
    try:
        found = IPv6Address(address).ipv4_mapped
    except ValueError:
        return ""
    return str(found) if found else ""


def gid_position(port: HcaPort) -> str:
    """Return a sentence on where the port has the wanted GID."""
    index = ipv4_index(port)
    where = "not found" if index is None else f"at index {index}"
    return f"{port.name}: RoCE v2 with an IPv4 address {where}"


def subnet_prefix(gids: Iterable[Gid]) -> str:
    """Return the InfiniBand subnet of a port, such as fe80::, from its first GID; "" if it has none."""
    first = next((gid.address for gid in gids if gid.index == 0), "")
    return _network(":".join(first.split(":")[:4])) if first else ""


@lru_cache(maxsize=256)  # the ports of a cluster are in the same few
def _network(groups: str) -> str:
    return str(IPv6Address(groups + "::"))


def is_routed(gids: Iterable[Gid]) -> bool:
    """Return whether InfiniBand routers forward to a port: its GID 1 holds an FLID, which NCCL then uses (common.h)."""
    second = next((gid.address for gid in gids if gid.index == 1), "")
    return bool(second) and second.split(":")[2].strip("0") != ""


def ports_of_job(cluster: Cluster) -> dict[str, tuple[HcaPort, ...]]:
    """Return the ports that NCCL uses, by node: those that NCCL_IB_HCA selects, else all that are Active.

    The check must declare InfinibandFacts, EnvironmentFacts and LoadedNcclFacts.
    """
    return {
        node.name: selected(nccl_value(node, "NCCL_IB_HCA"), node[InfinibandFacts].ports)
        for node in cluster if isinstance(node.maybe(InfinibandFacts), InfinibandFacts)
    }  # fmt: skip


def nccl_value(node: NodeView, variable: str) -> str:
    """Return the value of one of NCCL's variables on a node; "" if it is unset or could not be read."""
    environment = node.maybe(EnvironmentFacts)
    settings = (
        settings_of(environment, node.maybe(LoadedNcclFacts)) if isinstance(environment, EnvironmentFacts) else {}
    )
    return settings[variable].value if variable in settings else ""


def active(ports: Iterable[HcaPort]) -> tuple[HcaPort, ...]:
    """Return the ports that NCCL uses by default."""
    return tuple([port for port in ports if port.state == "Active" and port.link_layer in USED_LAYERS])


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


# The numbers in the types of virtual functions (Linux source, mlx4/main.c and mlx5/core/main.c): MT4124 is PCI 0x101c.
_VIRTUAL = frozenset({0x1002, 0x1004, 0x1012, 0x1014, 0x1016, 0x1018, 0x101A, 0x101C, 0x101E, 0xA2D3})


def is_virtual(port: HcaPort) -> bool:
    """Return whether the HCA is a virtual function, as EFA's all are: it shares a card that others configure."""
    number = port.hca_type.removeprefix("MT")
    return port.link_layer == EFA or (number.isdecimal() and int(number) in _VIRTUAL)


def value_for(ports: Iterable[HcaPort]) -> str:
    """Return the NCCL_IB_HCA that selects exactly these ports: "=mlx5_0:1,mlx5_1:1"."""
    places = sorted({(port.hca, port.port) for port in ports}, key=lambda place: (natural(place[0]), place[1]))
    return "=" + ",".join(f"{hca}:{number}" for hca, number in places)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts mlx5_9 before mlx5_10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", name))
