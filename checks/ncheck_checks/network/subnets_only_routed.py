"""The nodes share no subnet: routers join them

## What it finds
Clusters in which no subnet has an address on every node, and every node has a default route: usual in clouds that
give each machine an address of its own, and in fabrics that are routed up to the host.

## Why it matters
Nothing is wrong where the routers pass all that a job sends. They may not: ncheck tells here only what it has not
seen to be one network.

## What to type
`tracepath NODE` from one node to another shows the way and its packet size.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import Apart, apart, machines


@cluster_check("NC306", Severity.INFO, NicFacts, also=(IdentityFacts,))
def subnets_only_routed(cluster: Cluster) -> Iterator[Problem]:
    found = apart(machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts)))
    if isinstance(found, Apart) and found.routed:
        fix = f"tracepath {quote(found.odd[0])}"
        yield Problem(f"only routers join the nodes: {found.told}", fix, found.evidence, found.odd)
