"""Two nodes have the same address

## What it finds
Addresses that more than one node has in a network in which other nodes have addresses of their own. Networks that are
separate on each node, such as a container bridge or a management controller's, are not reported. If the nodes share no
other network, no-common-subnet reports it.

## Why it matters
Packets for the address reach now one node, now the other: connections are reset or hang, and which node is hit changes
when ARP entries expire. The network cannot be used for a job, which silently moves to another one.

## What to type
`ip -br address` on the named nodes; then give one of them an address of its own, also in its network configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check, fold
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import duplicates, machines, shared, subnet_addresses


@cluster_check("NC328", Severity.ERROR, NicFacts, also=(IdentityFacts,))
def address_on_two_nodes(cluster: Cluster) -> Iterator[Problem]:
    nodes = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    if not shared(nodes):  # no-common-subnet tells it
        return
    for ip, owners in duplicates(nodes).items():
        addresses = {node: address for node in owners for address in subnet_addresses(nodes[node]) if address.ip == ip}
        evidence = tuple(
            f"{node}: {address.interface.name} {address.interface.mac}".rstrip() for node, address in addresses.items()
        )
        fix = f"ip -br address show to {quote(ip)}"
        yield Problem(f"{fold(owners)} have the same address, {ip}", fix, evidence, owners, look=True)
