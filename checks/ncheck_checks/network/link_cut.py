"""Connections between nodes break, or another host answers

## What it finds
Pairs of nodes whose connection opened and then broke or fell silent, and addresses at which something other than
ncheck's agent answers. Causes are two machines with one address, a transparent proxy, or a firewall that inspects
connections. It is reported if no other subnet connects all nodes.

## Why it matters
NCCL sees "Connection reset by peer" or foreign data at some point, and the job dies.

## What to type
`ip neigh show to 10.1.0.7` on another node: the hardware address must be the one that `ip -br link` shows on the node
that owns the address. If it is not, find the other machine with this address.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.nccl.link_problems import ALSO, READS, Weight, problems
from ncheck.network.link_faults import FaultKind


@cluster_check("NC315", Severity.ERROR, *READS, also=ALSO)
def link_cut(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, FaultKind.CUT)
