"""A node is missing from a network

## What it finds
Subnets in which some nodes have an address and other nodes should: an interface there has an address but no link, or
lacks the address that it has on most nodes. If the job is slower without this network, fast-network-lacks-node reports
it.

## Why it matters
A job can use only a network of all its nodes. Open MPI without settings uses every network that it finds, and compares
subnets between nodes to do so.

## What to type
`sudo ethtool NAME` on the named nodes shows whether there is a link, and `ip -br address` the addresses. Leave a node
without such a card, such as a login node, out of the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.slowdown import SLOWDOWN_FACTS, lacking


@cluster_check("NC309", Severity.WARNING, NicFacts, also=(IdentityFacts, LinkFacts, *SLOWDOWN_FACTS))
def network_lacks_node(cluster: Cluster) -> Iterator[Problem]:
    return lacking(cluster, slower=False)
