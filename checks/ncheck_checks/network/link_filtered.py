"""Connections between nodes get no answer

## What it finds
Pairs of nodes between which connections get no answer within five seconds, tried from each address of one node to each
address of the other in the subnet. It is reported if no other subnet connects all nodes.

## Why it matters
Firewalls drop packets silently. NCCL waits two minutes for each of its 35 attempts, so the job hangs for more than an
hour and prints nothing.

## What to type
`sudo nft list ruleset` on the named node: look for "drop" and "policy drop". In a cloud, look at the security group.
All ports must be open between the nodes, not only a few. `ip route get ADDRESS` on both nodes: a static route or a VPN
that is left over leads packets astray, and that looks the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.nccl.link_problems import ALSO, READS, Weight, problems
from ncheck.network.link_faults import FaultKind


@cluster_check("NC311", Severity.ERROR, *READS, also=ALSO)
def link_filtered(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, FaultKind.FILTERED)
