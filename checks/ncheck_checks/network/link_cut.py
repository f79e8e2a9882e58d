"""Connections between nodes are cut, or answered by a stranger

## What it finds
Pairs of nodes whose connection opened and then ended in the middle or fell silent, and addresses at which something
else answers than the agent that listens there. Two machines with one address, a transparent proxy and a firewall that
looks into connections do that. It is named where the nodes have no other subnet in which all reach each other.

## Why it matters
NCCL sees "Connection reset by peer" or data that is not its own, at some time, and the job dies.

## What to type
`ip neigh show to 10.1.0.7` on another node: the hardware address must be the one that `ip -br link` shows on the node
that owns the address. If it is not, find who else has the address.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.network.link_faults import Trouble
from ncheck.network.link_problems import ALSO, READS, Weight, problems


@cluster_check("NC315", Severity.ERROR, *READS, also=ALSO)
def link_cut(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, Trouble.CUT)
