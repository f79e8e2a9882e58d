"""The job's port is unreachable from other nodes

## What it finds
A port that was given for the job, that is open on a node that needs it and that other nodes cannot reach in any subnet,
although they can reach the ports that the kernel picks. A firewall allows only the ports that it knows.

## Why it matters
Ranks wait at the rendezvous until it times out: ten minutes with torchrun, half an hour with gloo.

## What to type
`sudo nft list ruleset` on the named node; then allow all ports from the addresses of the other nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.links import LinkFacts, ListenFacts
from ncheck.nccl.job_ports import unreachable


@cluster_check("NC318", Severity.ERROR, LinkFacts, ListenFacts)
def job_port_unreachable(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return unreachable(cluster, surely=True)
