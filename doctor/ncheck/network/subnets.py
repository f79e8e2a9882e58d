"""Which subnets the nodes share, and by which of the interfaces that a job may be told to use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import BMC_DRIVERS, CARRIES_DATA, Interface, NicFacts
from ncheck.hostlist import fold
from ncheck.parse.interface_names import Kind


@dataclass(frozen=True)
class SubnetAddress:
    """One interface of one node in one subnet."""

    interface: Interface
    ip: str
    subnet: str


Nodes = Mapping[str, NicFacts]


SubnetMembers = dict[str, tuple[SubnetAddress, ...]]


def subnet_addresses(nics: NicFacts) -> Iterator[SubnetAddress]:
    """Yield the places at which a node can be met, in the kernel's order; link-local addresses are none."""
    for nic, address in nics.met_at:
        yield SubnetAddress(nic, address.ip, address.network)


def subnets(nodes: Nodes) -> dict[str, SubnetMembers]:
    """Return every subnet with the nodes that have an address in it; IPv4 comes first."""
    found: dict[str, SubnetMembers] = {}
    for node, nics in nodes.items():
        for seat in subnet_addresses(nics):
            members = found.setdefault(seat.subnet, {})
            members[node] = (*members.get(node, ()), seat)
    return dict(sorted(found.items(), key=lambda item: ":" in item[0]))


def networks(nodes: Nodes) -> dict[str, SubnetMembers]:
    """Return the subnets in which two nodes or more have an address, each of its own."""
    found = subnets(nodes)
    return {subnet: members for subnet, members in found.items() if len(members) > 1 and not _clashes(members)}


def together(nics: NicFacts) -> dict[str, tuple[SubnetAddress, ...]]:
    """Return the subnets in which this one node has addresses on several interfaces, with its seats there."""
    found = {subnet: members[""] for subnet, members in subnets({"": nics}).items()}
    return {subnet: held for subnet, held in found.items() if len({seat.interface.name for seat in held}) > 1}


def shared(nodes: Nodes) -> dict[str, SubnetMembers]:
    """Return the subnets in which every node has an address of its own.

    Where two nodes show one address, the subnet is not one network but one of that name on each of them, such as the
    bridge of a container engine.
    """
    return {
        subnet: members
        for subnet, members in subnets(nodes).items()
        if len(members) == len(nodes) and not _clashes(members)
    }


def clashing(nodes: Nodes) -> dict[str, tuple[str, ...]]:
    """Return each address that several nodes show, with these nodes."""
    return clashing_addresses({node: tuple(subnet_addresses(nics)) for node, nics in nodes.items()})


def clashing_addresses(members: SubnetMembers) -> dict[str, tuple[str, ...]]:
    """Return each address that several nodes show in one subnet, with these nodes."""
    owners: dict[str, dict[str, None]] = {}
    for node, held in members.items():
        for seat in held:
            owners.setdefault(seat.ip, {})[node] = None
    return {ip: tuple(found) for ip, found in owners.items() if len(found) > 1}


def routed(nics: NicFacts, clashes: Container[str] = ()) -> bool:
    """Tell whether a router stands behind some interface that a job may use, by an address of the node's own."""
    return any(seat.interface.default_route and seat.ip not in clashes for seat in subnet_addresses(nics))


def common_names(members: SubnetMembers) -> tuple[str, ...]:
    """Return the interface names that every node has in the subnet, in the order of the first node."""
    names = [[seat.interface.name for seat in held] for held in members.values()]
    return tuple(name for name in names[0] if all(name in held for held in names[1:]))


def speed(members: SubnetMembers) -> int:
    """Return the slowest node's speed in the subnet in Mb/s, 0 where a driver does not say."""
    return min(max(seat.interface.speed or 0 for seat in held) for held in members.values())


def best_first(everywhere: Mapping[str, SubnetMembers]) -> dict[str, SubnetMembers]:
    """Sort networks as a job's TCP would have them: the fastest first, of equal ones that of the default route."""

    def merit(subnet: str) -> tuple[int, bool]:
        held = everywhere[subnet].values()
        return speed(everywhere[subnet]), all(any(seat.interface.default_route for seat in own) for own in held)

    return {subnet: everywhere[subnet] for subnet in sorted(everywhere, key=merit, reverse=True)}


def _clashes(members: SubnetMembers) -> bool:
    return any(count > 1 for count in Counter(seat.ip for held in members.values() for seat in held).values())


@dataclass(frozen=True)
class Apart:
    """Nodes with no subnet in common. `routed`: a router may join them. `odd` are those outside the largest subnet."""

    routed: bool
    odd: tuple[str, ...]
    told: str
    evidence: tuple[str, ...]


def apart(nodes: Nodes) -> Apart | None:
    """Return how the nodes lie apart; None where some subnet is common to all that have any address at all."""
    seated = {node: nics for node, nics in nodes.items() if any(subnet_addresses(nics))}
    if len(seated) < 2 or shared(seated):  # noqa: PLR2004  it takes two
        return None
    found = sorted(subnets(seated).items(), key=lambda item: -len(item[1]))
    clashes = clashing(seated)
    lines = [f"{subnet} on {fold(members)}" for subnet, members in found]
    evidence = (*lines, *(f"{ip} is an address of {fold(owners)}" for ip, owners in clashes.items()))
    joined = all(routed(nics, clashes) for nics in seated.values())
    subnet, largest = found[0]
    doubled = clashing_addresses(largest)
    if not joined and len(largest) == len(seated):  # not one network, but one of that name on each
        odd = dict.fromkeys(node for owners in doubled.values() for node in owners)
        told = [f"{fold(owners)} show one address in {subnet}, {ip}" for ip, owners in doubled.items()]
    else:
        majority = 2 * len(largest) > len(seated) and not doubled
        odd = dict.fromkeys(node for node in seated if not (majority and node in largest))
        told = lines
    return Apart(joined, tuple(odd), ", ".join(told[:3]) + (", ..." if len(told) > 3 else ""), evidence)  # noqa: PLR2004


def shared_bridges(nodes: Nodes) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the bridges of containers by name and address that are up on several nodes, with these nodes."""
    owners: dict[tuple[str, str], dict[str, None]] = {}
    for node, nics in nodes.items():
        for nic in nics.interfaces:
            for address in nic.addresses if nic.kind is Kind.CONTAINER_BRIDGE and nic.up else ():
                if address.scope == "global":
                    owners.setdefault((nic.name, address.ip), {})[node] = None
    return {key: tuple(held) for key, held in owners.items() if len(held) > 1}


def link_local_only(nodes: Nodes) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return by node the wires that have link-local addresses only, with these, where they should have another one.

    They should where the same name has one on more than half of the nodes, or where the node has no other at all.
    """
    addressed = Counter(
        name for nics in nodes.values() for name in {seat.interface.name for seat in subnet_addresses(nics)}
    )
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for node, nics in nodes.items():
        lost = not any(subnet_addresses(nics))
        for nic in nics.interfaces:
            if _only_link_local(nic) and (lost or 2 * addressed[nic.name] > len(nodes)):
                found.setdefault(node, {})[nic.name] = tuple(address.ip for address in nic.addresses)
    return found


def _only_link_local(nic: Interface) -> bool:
    wired = nic.kind in CARRIES_DATA and nic.up and nic.running and nic.driver not in BMC_DRIVERS
    return wired and bool(nic.addresses) and all(ip_address(one.ip).is_link_local for one in nic.addresses)


def doubles(nodes: Iterable[str], identities: Mapping[str, IdentityFacts]) -> dict[str, str]:
    """Map each node that is a machine which comes before it under another name to that name."""
    first: dict[tuple[str, str], str] = {}
    found: dict[str, str] = {}
    for node in nodes:
        if node in identities and (machine := identities[node].machine):
            known = first.setdefault(machine, node)
            found |= {node: known} if known != node else {}
    return found


def machines(nics: Mapping[str, NicFacts], identities: Mapping[str, IdentityFacts]) -> dict[str, NicFacts]:
    """Keep the first of the nodes that are one machine, and all of which that is not known."""
    again = doubles(nics, identities)
    return {node: held for node, held in nics.items() if node not in again}
