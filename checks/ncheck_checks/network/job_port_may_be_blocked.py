"""The job's port may be unreachable from other nodes

## What it finds
A port of the job on a node that needs it, which other nodes cannot reach in one subnet but can reach in another, or a
launcher's default port that nobody requested and that they cannot reach at all.

## Why it matters
It depends on the address at which the ranks meet. At the wrong address they wait until the rendezvous times out.

## What to type
`sudo nft list ruleset` on the named node; then allow all ports from the addresses of the other nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.links import LinkFacts, ListenFacts
from ncheck.nccl.job_ports import unreachable


@cluster_check("NC308", Severity.WARNING, LinkFacts, ListenFacts)
def job_port_may_be_blocked(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return unreachable(cluster, surely=False)
