"""The nodes share no subnet, and no router connects them

## What it finds
Clusters without a subnet in which every node has an address of its own, if some node has no default route, or if
several nodes have the same address, as containers on private bridges do. no-usable-interface reports nodes without any
usable interface.

## Why it matters
Ranks send each other addresses that not all of them can reach. The job starts on all nodes and hangs at its first
collective.

## What to type
`ip -br address` on the named nodes: look for a wrong prefix length, a missing address, or a container without
`docker run --network=host`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import Apart, apart, machines


@cluster_check("NC305", Severity.ERROR, NicFacts, also=(IdentityFacts,))
def no_common_subnet(cluster: Cluster) -> Iterator[Problem]:
    found = apart(machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts)))
    if isinstance(found, Apart) and not found.routed:
        message = f"no subnet is common to all nodes: {found.summary}"
        yield Problem(
            message, "ip -br address", found.evidence, found.odd, look=True, summary="no subnet is common to all nodes"
        )
