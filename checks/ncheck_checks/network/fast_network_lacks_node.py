"""A node is missing from the fastest network, so the job uses a slower one

## What it finds
Networks that are faster than every network that connects all nodes, and that would connect them but for some nodes: an
interface without a link, without an address, in another VLAN, behind a switch port with a small MTU, or no interface in
that network at all. It is reported if the plan has to use a slower network, with the factor. It is not reported if RDMA
carries the job's data, or if you requested an interface.

## Why it matters
A job can use only a network of all its nodes. One unplugged cable moves the traffic of all nodes to another network,
perhaps the management network, a hundred times slower. Nothing fails, and no message says so.

## What to type
`sudo ethtool NAME` on the named nodes shows whether there is a link, and `ip -br address` the addresses. Leave a node
without such a card, such as a login node, out of the list. `--ignore fast-network-lacks-node` accepts the slower
network.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.nccl.link_problems import ALSO, Weight, problems
from ncheck.network.slowdown import lacking


@cluster_check("NC329", Severity.ERROR, NicFacts, also=(LinkFacts, IdentityFacts, *ALSO))
def fast_network_lacks_node(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    yield from lacking(cluster, slower=True)
    yield from problems(cluster, Weight.SLOWER)
