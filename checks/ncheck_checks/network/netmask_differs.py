"""A node has another netmask than the others in its network

## What it finds
Nodes whose address lies in a network of other nodes, but has another prefix length: 10.1.0.7/24 where the others have
/16. A node with an address in both networks is not reported, nor is the /128 that DHCPv6 gives.

## Why it matters
The node sends packets for its neighbours to a router, or to nobody; a node with a netmask that is too short asks for
distant hosts by ARP. MPI and NCCL compare subnets to decide which interfaces reach each other, and leave this one out.

## What to type
`ip -br address` on the named node shows the prefix lengths. Correct it in the node's network configuration too: the fix
lasts until the next boot.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts, SubnetAddress
from ncheck.network.subnets import machines, netmasks


@cluster_check("NC327", Severity.ERROR, NicFacts, also=(IdentityFacts,))
def netmask_differs(cluster: Cluster) -> Iterator[Problem]:
    for addresses in netmasks(machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))):
        parted = split({node: _netmask(address) for node, address in addresses.items()})
        if parted:
            odd = {node: addresses[node] for node in parted.odd}
            evidence = tuple(
                f"{node}: {address.ip}{_netmask(address)} on {address.interface.name}" for node, address in odd.items()
            )
            network = addresses[parted.groups[0][1][0]].subnet
            message = f"the netmask in {network} differs: {parted.summary()}"
            fix, sure = _fix(tuple(odd.values()), parted.majority)
            yield Problem(message, fix, evidence, parted.odd, look=not sure)


def _netmask(address: SubnetAddress) -> str:
    return address.subnet[address.subnet.index("/") :]


def _fix(odd: tuple[SubnetAddress, ...], wanted: str | None) -> tuple[str, bool]:
    """Return the command, and whether it mends: it does so for one node only, whose address it has in it."""
    address = odd[-1]
    name = quote(address.interface.name)
    if wanted is None or len(odd) > 1:
        return f"ip -br address show dev {name}", False
    new, old = f"{address.ip}{wanted}", f"{address.ip}{_netmask(address)}"
    return f"sudo ip address add {new} dev {name} && sudo ip address del {old} dev {name}", True
