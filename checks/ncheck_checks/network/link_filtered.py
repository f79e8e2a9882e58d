"""Nodes get no answer from each other

## What it finds
Pairs of nodes between which packets vanish: no answer to a connection within five seconds, tried from each address of
one to each of the other in the subnet. It is named where the nodes have no other subnet in which all reach each other.

## Why it matters
Firewalls drop in silence. NCCL waits two minutes for each of its 35 attempts, so the job seems to hang for more than an
hour, and nothing is printed.

## What to type
`sudo nft list ruleset` on the node that is named: look for "drop" and "policy drop"; or the security group, where the
nodes are in a cloud. All ports must be open between the nodes, not a few.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.network.link_faults import Trouble
from ncheck.network.link_problems import ALSO, READS, Weight, problems


@cluster_check("NC311", Severity.ERROR, *READS, also=ALSO)
def link_filtered(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, Trouble.FILTERED)
