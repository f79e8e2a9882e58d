"""The nodes are connected by routers only

## What it finds
Clusters without a subnet in which every node has an address, where every node has a default route. This is usual in
clouds that give each machine an address of its own, and in fabrics that route to each host.

## Why it matters
It does no harm if the routers forward everything that a job sends. They may not; ncheck reports that the nodes are not
in one network.

## What to type
`tracepath NODE` from one node to another shows the route and its packet size.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Cluster, Problem, Severity, cluster_check
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import Apart, apart, machines


@cluster_check("NC306", Severity.INFO, NicFacts, also=(IdentityFacts,))
def subnets_only_routed(cluster: Cluster) -> Iterator[Problem]:
    found = apart(machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts)))
    if isinstance(found, Apart) and found.routed:
        fix = f"tracepath {quote(found.odd[0])}"
        yield Problem(
            f"only routers connect the nodes: {found.summary}", fix, found.evidence, found.odd, where=HERE, look=True
        )
