"""The nodes share no subnet, and no router connects them

## What it finds
Clusters without a subnet in which every node has an address of its own, if some node has no default route, or if
several nodes have the same address. Containers on private bridges, all with one address, are left to
container-network-isolated. no-usable-interface reports nodes without any usable interface.

## Why it matters
Ranks send each other addresses that not all of them can reach. The job starts on all nodes and hangs at its first
collective.

## What to type
`ip -br address` on the named nodes: look for a wrong prefix length or a missing address.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import Apart, apart, machines, same_uplinks


@cluster_check("NC305", Severity.ERROR, NicFacts, also=(IdentityFacts,))
def no_common_subnet(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    nodes = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    found = apart(nodes)
    if isinstance(found, Apart) and found.odd and same_uplinks(nodes).issuperset(found.odd):
        yield NotApplicable("container-network-isolated reports it", found.odd)
    elif isinstance(found, Apart) and not found.routed:
        message = f"no subnet is common to all nodes: {found.summary}"
        yield Problem(
            message, "ip -br address", found.evidence, found.odd, look=True, summary="no subnet is common to all nodes"
        )
