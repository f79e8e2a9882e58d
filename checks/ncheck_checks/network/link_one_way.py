"""Nodes connect in one direction only

## What it finds
Pairs of nodes of which one can connect to the other, but not the other way round, while both can connect to other
nodes. Causes are a firewall that allows outgoing but not incoming connections, or an asymmetric route with rp_filter.
It is reported if no other subnet connects all nodes.

## Why it matters
Which rank connects and which one listens depends on the algorithm and the number of nodes. The job works with some
nodes, or in some order, and hangs with others.

## What to type
`sudo nft list ruleset` on the node that cannot be reached, and `sudo sysctl net.ipv4.conf.all.rp_filter` there;
`ip route get ADDRESS` on both, to see whether packets take the same way in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.nccl.link_problems import ALSO, READS, Weight, problems
from ncheck.network.link_faults import FaultKind


@cluster_check("NC313", Severity.ERROR, *READS, also=ALSO)
def link_one_way(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, FaultKind.ONE_WAY)
