"""A node is missing from a network

## What it finds
Subnets in which some nodes have an address and other nodes should: an interface there has an address but no link, or
lacks the address that it has on most nodes. Nodes without such an interface are reported if the subnet is faster than
every subnet that all nodes share.

## Why it matters
A job can use only a network of all its nodes. One unplugged cable moves the traffic of all nodes to another network,
perhaps the management network, a hundred times slower. Nothing fails, and no message says so.

## What to type
`sudo ethtool NAME` on the named nodes shows whether there is a link, and `ip -br address` the addresses. Leave a node
without such a card, such as a login node, out of the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check, fold, nodes_by_value
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import machines, parted_networks, speed


@cluster_check("NC309", Severity.WARNING, NicFacts, also=(IdentityFacts,))
def network_lacks_node(cluster: Cluster) -> Iterator[Problem]:
    nodes = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    for parted in parted_networks(nodes):
        fast = speed(parted.members)
        where = parted.subnet + (f" ({fast / 1000:g} Gb/s)" if fast else "")
        for why, names in nodes_by_value(parted.missing).items():
            message = f"{where} connects {fold(parted.members)}, but not {fold(names)}: {why.reason}"
            yield Problem(message, why.fix, nodes=names, look=why.look, summary=f"not in {parted.subnet}")
