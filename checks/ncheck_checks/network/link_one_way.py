"""Nodes reach each other one way only

## What it finds
Pairs of nodes of which one opens connections to the other and not the other way round, where neither is at odds with
all the rest. A firewall that lets out what it does not let in looks so, and an asymmetric route with rp_filter.
It is named where the nodes have no other subnet in which all reach each other.

## Why it matters
Which rank calls and which one listens changes with the algorithm and the number of nodes: the job works with some
nodes, or in some order, and hangs with others.

## What to type
`sudo nft list ruleset` on the node that is not reached, and `sudo sysctl net.ipv4.conf.all.rp_filter` there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.network.link_faults import Trouble
from ncheck.network.link_problems import ALSO, READS, Weight, problems


@cluster_check("NC313", Severity.ERROR, *READS, also=ALSO)
def link_one_way(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, Trouble.ONE_WAY)
