"""The port of the job may not be reached from other nodes

## What it finds
A port of the job that other nodes do not reach on the first node in one subnet, while they reach it in another one; or
a launcher's default port that they do not reach at all and that nobody named.

## Why it matters
Which address the ranks meet at decides: at the wrong one they wait until the rendezvous' time-out.

## What to type
`sudo nft list ruleset` on the first node: let in the other nodes' addresses, all ports.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.links import LinkFacts, ListenFacts
from ncheck.facts.login import LoginFacts
from ncheck.network.job_ports import unreachable


@cluster_check("NC308", Severity.WARNING, LinkFacts, ListenFacts, also=(LoginFacts,))
def job_port_may_be_blocked(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return unreachable(cluster, surely=False)
