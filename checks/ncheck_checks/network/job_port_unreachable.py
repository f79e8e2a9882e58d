"""The port of the job cannot be reached from other nodes

## What it finds
A port that was named for the job, open on the first node and not to be reached from others in any subnet, while the
ports that the kernel picks can be: a firewall lets in what it knows and not this one.

## Why it matters
Ranks wait at the rendezvous until its time-out: ten minutes with torchrun, half an hour with gloo.

## What to type
`sudo nft list ruleset` on the first node: let in the other nodes' addresses, all ports.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.links import LinkFacts, ListenFacts
from ncheck.facts.login import LoginFacts
from ncheck.network.job_ports import unreachable


@cluster_check("NC318", Severity.ERROR, LinkFacts, ListenFacts, also=(LoginFacts,))
def job_port_unreachable(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return unreachable(cluster, surely=True)
