"""Networks that some nodes are in and others should be: an interface there has no link, or no address."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from ncheck.facts.nics import CARRIES_DATA, Interface, NicFacts
from ncheck.network.subnets import (
    Nodes,
    SubnetMembers,
    clashing_addresses,
    link_local_only,
    shared,
    speed,
    subnet_addresses,
    subnets,
)


@dataclass(frozen=True)
class Missing:
    """Why a node is not in a subnet, and a line to type there. `name` is the interface that should lead into it, or "".

    `dead`: the interface has an address there, and nothing else.
    """

    told: str
    fix: str
    name: str = ""
    dead: bool = False


NO_INTERFACE = Missing("no interface leads there", "ip -br address")


@dataclass(frozen=True)
class Parted:
    """A subnet with the nodes that are in it, and those that should be."""

    subnet: str
    members: SubnetMembers
    missing: dict[str, Missing]


def parted_networks(nodes: Nodes) -> tuple[Parted, ...]:
    """Return the subnets in which nodes are missing.

    A node is missing where its address in the subnet is dead for want of a link; where most nodes are in the subnet
    and its interface of that name has no address; and where all that the nodes share is slower, and half of them are in
    the subnet. Nodes that have no seat at all, or a link-local address alone there, are told of elsewhere.
    """
    seated = {node: nics for node, nics in nodes.items() if any(subnet_addresses(nics))}
    best, told = max(map(speed, shared(seated).values()), default=None), link_local_only(nodes)
    found = []
    for subnet, members in subnets(seated).items():
        faster = best is not None and speed(members) > best
        lacking = {node: why_missing(nics, subnet, members) for node, nics in seated.items() if node not in members}
        missing = {
            node: why
            for node, why in lacking.items()
            if why.name not in told.get(node, ()) and _counts(why, len(members), len(seated), faster=faster)
        }
        if missing and not clashing_addresses(members):
            found.append(Parted(subnet, members, missing))
    return tuple(found)


def _counts(why: Missing, members: int, nodes: int, *, faster: bool) -> bool:
    most, half = 2 * members > nodes, 2 * members >= nodes
    return why.dead or (most and (faster or bool(why.name))) or (half and faster and bool(why.name))


def why_missing(nics: NicFacts, subnet: str, members: SubnetMembers) -> Missing:
    """Say why: by the interface that has an address there or, of those without one, is called as the others'."""
    names = {seat.interface.name for held in members.values() for seat in held}
    wires = [nic for nic in nics.interfaces if nic.kind in CARRIES_DATA]
    for nic in wires:
        if any(address.network == subnet for address in nic.addresses):
            return _missing(nic, dead=True)
    spare = (nic for nic in wires if nic.name in names and all(one.scope != "global" for one in nic.addresses))
    return next((_missing(nic) for nic in spare), NO_INTERFACE)


def _missing(nic: Interface, *, dead: bool = False) -> Missing:
    name = quote(nic.name)
    if not nic.up:
        return Missing(f"{nic.name} is down", f"sudo ip link set {name} up", nic.name, dead)
    if not nic.running:
        return Missing(f"{nic.name} has no link", f"sudo ethtool {name}", nic.name, dead)
    return Missing(f"{nic.name} has no address there", f"ip -br address show dev {name}", nic.name, dead)
