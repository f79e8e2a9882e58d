"""Nodes have no way to each other

## What it finds
Pairs of nodes between which the kernel knows no way: no route, "no route to host" from a router, or nobody who answers
to the address on the wire. An interface that is up with its cable in the wrong switch, a missing VLAN or a wrong prefix
length look so. It is named where the nodes have no other subnet in which all reach each other.

## Why it matters
An address that has an interface looks as good as any to NCCL and MPI. They offer it to the other ranks, and the job
hangs or stops at its start.

## What to type
`ip route get 10.1.0.7 from 10.1.0.3` on the node that is named shows the way that its kernel takes, and `ip neigh` who
answered on the wire; then look at the cable, the switch's port and its VLAN.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.network.link_faults import Trouble
from ncheck.network.link_problems import ALSO, READS, Weight, problems


@cluster_check("NC312", Severity.ERROR, *READS, also=ALSO)
def link_unroutable(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, Trouble.UNROUTABLE)
