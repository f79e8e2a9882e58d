"""Nodes have no route to each other

## What it finds
Pairs of nodes between which there is no route: the kernel has none, a router answers "no route to host", or nobody on
the local network answers for the address. Causes are a cable in the wrong switch, a missing VLAN or a wrong prefix
length. It is reported if no other subnet connects all nodes.

## Why it matters
NCCL and MPI use any interface that has an address. They send it to the other ranks, and the job hangs or stops at its
start.

## What to type
`ip route get 10.1.0.7 from 10.1.0.3` on the named node shows the kernel's route, and `ip neigh` which neighbours
answered; then look at the cable, the switch port and its VLAN.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.nccl.link_problems import ALSO, READS, Weight, problems
from ncheck.network.link_faults import FaultKind


@cluster_check("NC312", Severity.ERROR, *READS, also=ALSO)
def link_unroutable(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, FaultKind.UNROUTABLE)
