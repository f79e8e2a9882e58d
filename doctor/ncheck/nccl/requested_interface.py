"""The interface that the user requests for the job (--ifname): its subnet, and the nodes on which it is unusable."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address

from ncheck.facts.links import LinkFacts
from ncheck.facts.nics import Interface, NicFacts, SubnetAddress
from ncheck.hostlist import fold
from ncheck.network.link_faults import faults
from ncheck.network.subnets import SubnetMembers, clashing_addresses
from ncheck.parity import nodes_by_value
from ncheck.parse.interface_names import Kind

Nodes = Mapping[str, NicFacts]

MISSING = "is missing"


def unusable(name: str, nodes: Nodes) -> dict[str, str]:
    """Return why the interface cannot carry a job, by node; nodes on which it can are left out."""
    reasons = {node: _why_unusable(name, nics) for node, nics in nodes.items()}
    return {node: reason for node, reason in reasons.items() if reason}


def _why_unusable(name: str, nics: NicFacts) -> str:
    nic = next((nic for nic in nics.interfaces if nic.name == name), None)
    if nic is None:
        return MISSING
    if nic.kind is Kind.LOOPBACK:
        return "is the loopback, which reaches no other node"
    if not nic.up or not nic.running:
        return "is down" if not nic.up else "has no link"
    return "" if _addresses(nic) else "has no address that other nodes can reach"


def subnet_and_addresses(name: str, nodes: Nodes) -> tuple[str, SubnetMembers]:
    """Return the subnet that the interface has on all nodes, "" if there is none, and its addresses there."""
    addresses = {node: _addresses(nic) for node, nics in nodes.items() for nic in nics.interfaces if nic.name == name}
    by_subnet: dict[str, SubnetMembers] = {}
    for node, own in addresses.items():
        for address in own:
            members = by_subnet.setdefault(address.subnet, {})
            members[node] = (*members.get(node, ()), address)
    common = [subnet for subnet, members in by_subnet.items() if len(members) == len(nodes)]
    ordered = sorted(common, key=lambda subnet: ":" in subnet)
    return (ordered[0], by_subnet[ordered[0]]) if ordered else ("", addresses)


def why_not_connected(name: str, nodes: Nodes) -> str:
    """Return why the interface, usable on each node, connects no common network; "" if it does."""
    subnet, members = subnet_and_addresses(name, nodes)
    if subnet:
        clashes = clashing_addresses(members)
        return next((f"{fold(owners)} have the same address there, {ip}" for ip, owners in clashes.items()), "")
    if all(nic.default_route for nics in nodes.values() for nic in nics.interfaces if nic.name == name):
        return ""
    subnets = nodes_by_value(
        {node: " and ".join(own.subnet for own in addresses) for node, addresses in members.items()}
    )
    return "the nodes have it in different subnets: " + ", ".join(
        f"{subnet} on {fold(owners)}" for subnet, owners in subnets.items()
    )


def _addresses(nic: Interface) -> tuple[SubnetAddress, ...]:
    return tuple(
        SubnetAddress(nic, address.ip, address.network)
        for address in nic.addresses
        if address.scope == "global" and not ip_address(address.ip).is_link_local
    )


def problems_of(name: str, nodes: Nodes, links: Mapping[str, LinkFacts]) -> dict[str, tuple[str, ...]]:
    """Return what is wrong with the interface for this job, each problem with its nodes."""
    reasons = unusable(name, nodes)
    if len(reasons) == len(nodes) and set(reasons.values()) == {MISSING}:
        there = sorted({nic.name for nics in nodes.values() for nic in nics.candidates})
        return {
            f"no node has an interface of that name; there are {', '.join(there) or 'none for a job'}": tuple(nodes)
        }
    if reasons:
        return {f"{name} {why} on {fold(owners)}": owners for why, owners in nodes_by_value(reasons).items()}
    if why := why_not_connected(name, nodes):
        return {why: tuple(nodes)}
    found = faults(links, subnet_and_addresses(name, nodes)[0], tuple(nodes))
    return {fault.summary: fault.nodes for fault in found}
