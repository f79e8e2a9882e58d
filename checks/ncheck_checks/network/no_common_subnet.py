"""The nodes share no subnet, and no router joins them

## What it finds
Clusters in which no subnet has an address of its own on every node, while some node has no default route by which the
others could be reached, or several nodes show one and the same address, as containers on private bridges do. Nodes
that have no usable interface at all have their own check.

## Why it matters
Ranks offer each other addresses that cannot be reached from everywhere. The job starts on all nodes and hangs at its
first collective.

## What to type
`ip -br address` on the named nodes: look for a wrong prefix length, a missing address, a container without `docker
run --network=host`.
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
        yield Problem(f"no subnet is common to all nodes: {found.told}", "ip -br address", found.evidence, found.odd)
