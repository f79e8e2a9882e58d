"""A network joins the nodes, and one of them is not in it

## What it finds
Subnets that some nodes have an address in and others should: an interface there has its address and no link, or has
lost the address that it has on most nodes. Nodes that have no such interface are named where the subnet is faster than
every one that all nodes share.

## Why it matters
A job can use only what joins all its nodes. One cable that is out moves the data of all of them to another network, the
management network maybe, a hundred times slower; nothing fails, and nothing says so.

## What to type
`sudo ethtool NAME` on the named nodes tells whether there is a link, `ip -br address` which addresses there are. A node
that has no such card, such as a head node, is better left out of the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold
from ncheck.network.missing_addresses import parted_networks
from ncheck.network.subnets import machines, speed
from ncheck.parity import gathered


@cluster_check("NC309", Severity.WARNING, NicFacts, also=(IdentityFacts,))
def network_lacks_node(cluster: Cluster) -> Iterator[Problem]:
    nodes = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    for parted in parted_networks(nodes):
        fast = speed(parted.members)
        where = parted.subnet + (f" ({fast / 1000:g} Gb/s)" if fast else "")
        for why, names in gathered(parted.missing).items():
            told = f"{where} joins {fold(parted.members)}, and not {fold(names)}: {why.told}"
            yield Problem(told, why.fix, nodes=names)
