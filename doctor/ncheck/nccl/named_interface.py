"""The interface that the user named for the job (--ifname): where it leads, and on which nodes it does not."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address

from ncheck.facts.links import LinkFacts
from ncheck.facts.nics import Interface, NicFacts
from ncheck.hostlist import fold
from ncheck.network.link_faults import faults
from ncheck.network.subnets import SubnetAddress, SubnetMembers, clashing_addresses
from ncheck.parity import nodes_by_value
from ncheck.parse.interface_names import Kind

Nodes = Mapping[str, NicFacts]


MISSING = "is not there"


def lame(name: str, nodes: Nodes) -> dict[str, str]:
    """Return why the interface is of no use to a job, by node; nodes on which it is well are left out."""
    found = {node: _lame(name, nics) for node, nics in nodes.items()}
    return {node: why for node, why in found.items() if why}


def _lame(name: str, nics: NicFacts) -> str:
    nic = next((nic for nic in nics.interfaces if nic.name == name), None)
    if nic is None:
        return MISSING
    if nic.kind is Kind.LOOPBACK:
        return "is the loopback, which leads to no other node"
    if not nic.up or not nic.running:
        return "is down" if not nic.up else "has no link"
    return "" if _seats(nic) else "has no address by which others can reach it"


def where(name: str, nodes: Nodes) -> tuple[str, SubnetMembers]:
    """Return the subnet that the interface leads into on all nodes ("" if there is none), and its addresses there."""
    held = {node: _seats(nic) for node, nics in nodes.items() for nic in nics.interfaces if nic.name == name}
    everywhere: dict[str, SubnetMembers] = {}
    for node, found in held.items():
        for seat in found:
            members = everywhere.setdefault(seat.subnet, {})
            members[node] = (*members.get(node, ()), seat)
    common = [subnet for subnet, members in everywhere.items() if len(members) == len(nodes)]
    ordered = sorted(common, key=lambda subnet: ":" in subnet)
    return (ordered[0], everywhere[ordered[0]]) if ordered else ("", held)


def astray(name: str, nodes: Nodes) -> str:
    """Say why the interface, well as it is on each node, joins them to no network; "" where it does."""
    subnet, members = where(name, nodes)
    if subnet:
        shown = clashing_addresses(members)
        return next((f"{fold(owners)} show one address there, {ip}" for ip, owners in shown.items()), "")
    if all(nic.default_route for nics in nodes.values() for nic in nics.interfaces if nic.name == name):
        return ""
    ends = nodes_by_value({node: " and ".join(seat.subnet for seat in held) for node, held in members.items()})
    return "it leads into no subnet of all: " + ", ".join(f"{end} on {fold(owners)}" for end, owners in ends.items())


def _seats(nic: Interface) -> tuple[SubnetAddress, ...]:
    return tuple(
        SubnetAddress(nic, address.ip, address.network)
        for address in nic.addresses
        if address.scope == "global" and not ip_address(address.ip).is_link_local
    )


def misled(name: str, nodes: Nodes, links: Mapping[str, LinkFacts]) -> dict[str, tuple[str, ...]]:
    """Return what is wrong with the interface as the job's, each with the nodes that it is said of."""
    troubles = lame(name, nodes)
    if len(troubles) == len(nodes) and set(troubles.values()) == {MISSING}:
        there = sorted({nic.name for nics in nodes.values() for nic in nics.candidates})
        return {f"no node has an interface called so; there are {', '.join(there) or 'none for a job'}": tuple(nodes)}
    if troubles:
        return {f"{name} {why} on {fold(owners)}": owners for why, owners in nodes_by_value(troubles).items()}
    if why := astray(name, nodes):
        return {why: tuple(nodes)}
    found = faults(links, where(name, nodes)[0], tuple(nodes))
    return {fault.summary: fault.nodes for fault in found}
