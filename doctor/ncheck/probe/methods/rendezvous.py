"""Where an identifier of NCCL leads: its ranks connect to the address that stands in it, whatever node gave it.

A node that gives one of another machine would let the others of the cluster call there. Layout: NCCL source,
bootstrap.h (struct ncclBootstrapHandle: a magic number, then the address); before 2.16 the address came first.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import Address, NicFacts

if TYPE_CHECKING:
    from ncheck.probe.methods.method import Ground


_V4, _V6 = 2, 10  # AF_INET and AF_INET6 of Linux, as the nodes write it


_AFTER_MAGIC = 8


_SURELY_MAGIC = (2, 18)


def leads_astray(ground: Ground, group: Sequence[str], one: str) -> str:
    """Say why the nodes of a group should not meet by an identifier of the first one's; "" where they may.

    Its address must be the first node's own, in the plan's network or in a subnet that another node is in. Where the
    identifier holds no address at all NCCL itself refuses it.
    """
    raw = bytes.fromhex(one)
    found = [address for at in _places(ground, group) if (address := _address(raw[at:]))]
    strange = [address for address in found if not _own(ground, group, address)]
    return f"the identifier that it gave leads to {strange[0]}, which is not its own" if strange else ""


def _places(ground: Ground, group: Sequence[str]) -> tuple[int, ...]:
    """Return where in an identifier the address stands, by the versions that the other nodes have."""
    loaded = ground.cluster.connected_facts(LoadedNcclFacts)
    versions = [_numbers(loaded[node].version) if node in loaded else () for node in group[1:]]
    return (_AFTER_MAGIC,) if versions and min(versions) >= _SURELY_MAGIC else (0, _AFTER_MAGIC)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def _address(raw: bytes) -> str:
    """Return the address of a struct sockaddr_in or sockaddr_in6; "" where it is neither."""
    family = int.from_bytes(raw[:2], "little")
    if family == _V4:
        return str(ip_address(raw[4:8]))
    return str(ip_address(raw[8:24])) if family == _V6 else ""


def _own(ground: Ground, group: Sequence[str], address: str) -> bool:
    leader, *others = group
    if ground.network and address in {seat.ip for seat in ground.network.members.get(leader, ())}:
        return True
    nics = ground.cluster.connected_facts(NicFacts)
    told = {one.ip for one in _global(nics.get(leader))}
    subnets = (one.network for node in others for one in _global(nics.get(node)))
    return address in told and any(ip_address(address) in ip_network(subnet) for subnet in subnets)


def _global(nics: NicFacts | None) -> list[Address]:
    return [one for nic in (nics.interfaces if nics else ()) for one in nic.addresses if one.scope == "global"]
