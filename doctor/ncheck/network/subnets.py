"""The subnets of the nodes: which ones they share, through which interfaces, and which nodes are missing in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from ipaddress import ip_address, ip_network
from shlex import quote

from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import BMC_DRIVERS, CARRIES_DATA, Interface, NicFacts, SubnetAddress
from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.interface_names import Kind

Nodes = Mapping[str, NicFacts]
SubnetMembers = dict[str, tuple[SubnetAddress, ...]]


def subnet_addresses(nics: NicFacts) -> tuple[SubnetAddress, ...]:
    """Return the addresses at which other nodes can reach a node, in the kernel's order, without link-local ones."""
    return nics.met_at


def subnets(nodes: Nodes) -> dict[str, SubnetMembers]:
    """Return every subnet with the nodes that have an address in it; IPv4 comes first."""
    found: dict[str, SubnetMembers] = {}
    for node, nics in nodes.items():
        for address in subnet_addresses(nics):
            members = found.setdefault(address.subnet, {})
            members[node] = (*members.get(node, ()), address)
    return dict(sorted(found.items(), key=lambda item: ":" in item[0]))


def networks(nodes: Nodes) -> dict[str, SubnetMembers]:
    """Return the subnets in which two or more nodes have an address and no two have the same."""
    found = subnets(nodes)
    return {subnet: members for subnet, members in found.items() if len(members) > 1 and not _clashes(members)}


def several_interfaces(nics: NicFacts) -> dict[str, tuple[SubnetAddress, ...]]:
    """Return the subnets in which a node has addresses on several interfaces, with these addresses."""
    found = {subnet: members[""] for subnet, members in subnets({"": nics}).items()}
    return {
        subnet: addresses
        for subnet, addresses in found.items()
        if len({address.interface.name for address in addresses}) > 1
    }


def shared(nodes: Nodes) -> dict[str, SubnetMembers]:
    """Return the subnets in which every node has an address of its own.

    If two nodes have the same address, the subnet is not one network but a separate one on each node, such as a
    container bridge.
    """
    return {
        subnet: members
        for subnet, members in subnets(nodes).items()
        if len(members) == len(nodes) and not _clashes(members)
    }


def clashing(nodes: Nodes) -> dict[str, tuple[str, ...]]:
    """Return each address that several nodes have, with these nodes."""
    return clashing_addresses({node: tuple(subnet_addresses(nics)) for node, nics in nodes.items()})


def clashing_addresses(members: SubnetMembers) -> dict[str, tuple[str, ...]]:
    """Return each address that several nodes have in one subnet, with these nodes."""
    owners: dict[str, dict[str, None]] = {}
    for node, addresses in members.items():
        for address in addresses:
            owners.setdefault(address.ip, {})[node] = None
    return {ip: tuple(nodes) for ip, nodes in owners.items() if len(nodes) > 1}


def duplicates(nodes: Nodes) -> dict[str, tuple[str, ...]]:
    """Return each address that two nodes have in a network of others, with these nodes.

    Where most members of a subnet have the same address, or no other has one of its own, the subnet is not one network
    but a separate one on each node.
    """
    found: dict[str, tuple[str, ...]] = {}
    for members in subnets(nodes).values():
        clashes = clashing_addresses(members)
        doubled = {node for owners in clashes.values() for node in owners}
        if members.keys() - doubled:
            found |= {ip: owners for ip, owners in clashes.items() if len(owners) <= max(2, len(members) // 2)}
    return found


def netmasks(nodes: Nodes) -> tuple[dict[str, SubnetAddress], ...]:
    """Return each network in which nodes use different netmasks, as one address of each of its nodes.

    A node belongs to a network if one of its addresses lies there, and its own subnet is that of none of the others.
    """
    found = {subnet: members for subnet, members in subnets(nodes).items() if not subnet.endswith("/128")}
    lengths = {subnet.partition("/")[2] for subnet in found}
    strangers: dict[str, dict[str, SubnetAddress]] = {}
    for subnet, members in found.items():
        for node, address in ((node, address) for node, addresses in members.items() for address in addresses):
            for length in lengths - {subnet.partition("/")[2]}:
                other = _network_around(address.ip, length)
                if other in found and found[other].keys().isdisjoint(members):
                    strangers.setdefault(other, {})[node] = address
    groups: list[dict[str, SubnetAddress]] = []
    seen: set[str] = set()
    for subnet in sorted(strangers, key=lambda subnet: -len(found[subnet])):
        around = {subnet, *(address.subnet for address in strangers[subnet].values())}
        if seen.isdisjoint(around):
            group = {node: addresses[0] for node, addresses in found[subnet].items()} | strangers[subnet]
            groups.append({node: group[node] for node in nodes if node in group})
        seen |= around
    return tuple(groups)


def _network_around(ip: str, length: str) -> str:
    """Return the network of this prefix length around an address, "" if there is none in its family."""
    if int(length) > ip_address(ip).max_prefixlen:
        return ""
    return str(ip_network(f"{ip}/{length}", strict=False))


def routed(nics: NicFacts, clashes: Container[str] = ()) -> bool:
    """Tell whether a node has a default route through an interface that a job may use and an address of its own."""
    return any(address.interface.default_route and address.ip not in clashes for address in subnet_addresses(nics))


def common_names(members: SubnetMembers) -> tuple[str, ...]:
    """Return the interface names that every node has in the subnet, in the order of the first node."""
    names = [[address.interface.name for address in addresses] for addresses in members.values()]
    return tuple(name for name in names[0] if all(name in others for others in names[1:]))


def speed(members: SubnetMembers) -> int:
    """Return the slowest node's speed in the subnet in Mb/s, 0 if a driver does not report it."""
    return min(max(address.interface.speed or 0 for address in addresses) for addresses in members.values())


def best_first(everywhere: Mapping[str, SubnetMembers]) -> dict[str, SubnetMembers]:
    """Sort networks by speed, the fastest first; of equally fast ones, the default route's comes first."""

    def merit(subnet: str) -> tuple[int, bool]:
        members = everywhere[subnet].values()
        return speed(everywhere[subnet]), all(any(own.interface.default_route for own in node) for node in members)

    return {subnet: everywhere[subnet] for subnet in sorted(everywhere, key=merit, reverse=True)}


def _clashes(members: SubnetMembers) -> bool:
    return any(
        count > 1 for count in Counter(address.ip for addresses in members.values() for address in addresses).values()
    )


def uplink_addresses(nics: NicFacts) -> tuple[str, ...]:
    """Return the addresses by which a container with a network of its own sends; () for any other machine."""
    own = [nic for nic in nics.interfaces if nic.uplink]
    return tuple(address.ip for nic in own for address in nic.addresses if address.scope == "global")


def same_uplinks(nodes: Nodes) -> frozenset[str]:
    """Return the containers that have the same addresses as another one: each is alone on a bridge of its machine."""
    by_addresses: dict[tuple[str, ...], list[str]] = {}
    for node, nics in nodes.items():
        if addresses := uplink_addresses(nics):
            by_addresses.setdefault(addresses, []).append(node)
    return frozenset(node for alike in by_addresses.values() if len(alike) > 1 for node in alike)


@dataclass(frozen=True)
class Apart:
    """Nodes without a common subnet. `routed`: routers may connect them. `odd`: those outside the largest subnet."""

    routed: bool
    odd: tuple[str, ...]
    summary: str
    evidence: tuple[str, ...]


def apart(nodes: Nodes) -> Apart | None:
    """Return how the nodes are separated; None if all nodes that have an address share a subnet."""
    addressed = {node: nics for node, nics in nodes.items() if any(subnet_addresses(nics))}
    if len(addressed) < 2 or shared(addressed):  # noqa: PLR2004  at least two nodes
        return None
    found = sorted(subnets(addressed).items(), key=lambda item: -len(item[1]))
    clashes = clashing(addressed)
    lines = [f"{subnet} on {fold(members)}" for subnet, members in found]
    evidence = (*lines, *(f"{ip} is an address of {fold(owners)}" for ip, owners in clashes.items()))
    joined = all(routed(nics, clashes) for nics in addressed.values())
    subnet, largest = found[0]
    doubled = clashing_addresses(largest)
    if not joined and len(largest) == len(addressed):  # not one network, but a separate one on each node
        odd = dict.fromkeys(node for owners in doubled.values() for node in owners)
        parts = [f"{fold(owners)} have the same address in {subnet}, {ip}" for ip, owners in doubled.items()]
    else:
        majority = 2 * len(largest) > len(addressed) and not doubled
        odd = dict.fromkeys(node for node in addressed if not (majority and node in largest))
        parts = lines
    return Apart(joined, tuple(odd), ", ".join(parts[:3]) + (", ..." if len(parts) > 3 else ""), evidence)  # noqa: PLR2004


def shared_bridges(nodes: Nodes) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return container bridges, by name and address, that are up on several nodes, with these nodes."""
    owners: dict[tuple[str, str], dict[str, None]] = {}
    for node, nics in nodes.items():
        for nic in nics.interfaces:
            for address in nic.addresses if nic.kind is Kind.CONTAINER_BRIDGE and nic.up else ():
                if address.scope == "global":
                    owners.setdefault((nic.name, address.ip), {})[node] = None
    return {bridge: tuple(nodes) for bridge, nodes in owners.items() if len(nodes) > 1}


def link_local_only(nodes: Nodes) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return by node the interfaces that have only link-local addresses, with these, but should have another one.

    An interface should have another one if an interface of that name has one on more than half of the nodes, or if
    the node has no other address at all.
    """
    with_address = Counter(
        name for nics in nodes.values() for name in {address.interface.name for address in subnet_addresses(nics)}
    )
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for node, nics in nodes.items():
        none = not any(subnet_addresses(nics))
        for nic in nics.interfaces:
            if _only_link_local(nic) and (none or 2 * with_address[nic.name] > len(nodes)):
                found.setdefault(node, {})[nic.name] = tuple(address.ip for address in nic.addresses)
    return found


def _only_link_local(nic: Interface) -> bool:
    wired = nic.kind in CARRIES_DATA and nic.up and nic.running and nic.driver not in BMC_DRIVERS
    return wired and bool(nic.addresses) and all(ip_address(address.ip).is_link_local for address in nic.addresses)


def doubles(nodes: Iterable[str], identities: Mapping[str, IdentityFacts]) -> dict[str, str]:
    """Map each node whose machine is already listed under another name to that first name."""
    first: dict[tuple[str, str], str] = {}
    found: dict[str, str] = {}
    for node in nodes:
        if node in identities and (machine := identities[node].machine):
            name = first.setdefault(machine, node)
            found |= {node: name} if name != node else {}
    return found


def machines(nics: Mapping[str, NicFacts], identities: Mapping[str, IdentityFacts]) -> dict[str, NicFacts]:
    """Keep only the first node of each machine; nodes whose machine is unknown all stay."""
    again = doubles(nics, identities)
    return {node: facts for node, facts in nics.items() if node not in again}


@dataclass(frozen=True)
class Missing:
    """Why a node is not in a subnet, and a command for that node. `name`: the interface that should be in it, or "".

    `dead`: the interface has an address there but no link. `look`: the command only shows more.
    """

    reason: str
    fix: str
    name: str = ""
    dead: bool = False
    look: bool = True


NO_INTERFACE = Missing("no interface in this subnet", "ip -br address")


@dataclass(frozen=True)
class Parted:
    """A subnet with the nodes in it, and the nodes that should be in it."""

    subnet: str
    members: SubnetMembers
    missing: dict[str, Missing]


def parted_networks(nodes: Nodes) -> tuple[Parted, ...]:
    """Return the subnets in which nodes are missing.

    A node is missing if its interface in the subnet has no link; if most nodes are in the subnet and its interface of
    that name has no address; or if at least half of the nodes are in the subnet and every subnet that all nodes share
    is slower. Nodes without any address, with only a link-local one, or with another netmask are reported by other
    checks.
    """
    addressed = {node: nics for node, nics in nodes.items() if any(subnet_addresses(nics))}
    best, link_local = max(map(speed, shared(addressed).values()), default=None), link_local_only(nodes)
    masked = {
        (subnet, node)
        for group in netmasks(addressed)
        for subnet in {address.subnet for address in group.values()}
        for node in group
    }
    found = []
    for subnet, members in subnets(addressed).items():
        faster = best is not None and speed(members) > best
        lacking = {node: why_missing(nics, subnet, members) for node, nics in addressed.items() if node not in members}
        missing = {
            node: why
            for node, why in lacking.items()
            if (subnet, node) not in masked
            and why.name not in link_local.get(node, ())
            and _counts(why, len(members), len(addressed), faster=faster)
        }
        if missing and not clashing_addresses(members):
            found.append(Parted(subnet, members, missing))
    return tuple(found)


def _counts(why: Missing, members: int, nodes: int, *, faster: bool) -> bool:
    most, half = 2 * members > nodes, 2 * members >= nodes
    return why.dead or (most and (faster or bool(why.name))) or (half and faster and bool(why.name))


def why_missing(nics: NicFacts, subnet: str, members: SubnetMembers) -> Missing:
    """Return the reason: of the interface with an address in the subnet, or of one with the same name as the others."""
    names = {address.interface.name for addresses in members.values() for address in addresses}
    wires = [nic for nic in nics.interfaces if nic.kind in CARRIES_DATA]
    for nic in wires:
        if any(address.network == subnet for address in nic.addresses):
            return _missing(nic, dead=True)
    spare = (nic for nic in wires if nic.name in names and all(address.scope != "global" for address in nic.addresses))
    return next((_missing(nic) for nic in spare), NO_INTERFACE)


def _missing(nic: Interface, *, dead: bool = False) -> Missing:
    name = quote(nic.name)
    if not nic.up:
        return Missing(f"{nic.name} is down", f"sudo ip link set {name} up", nic.name, dead, look=False)
    if not nic.running:
        return Missing(f"{nic.name} has no link", f"sudo ethtool {name}", nic.name, dead)
    return Missing(f"{nic.name} has no address in this subnet", f"ip -br address show dev {name}", nic.name, dead)
