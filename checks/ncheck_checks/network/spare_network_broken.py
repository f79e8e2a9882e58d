"""A spare network is broken

## What it finds
Nodes that cannot reach each other in some subnet, while another subnet connects all nodes, or while not all nodes have
an address in the broken one. An interface that is up but leads nowhere causes this. If the job is slower without the
broken network, fast-network-lacks-node reports it.

## Why it matters
It does no harm if the job uses the working network. Without settings, Open MPI uses every network that it finds, and
NCCL without InfiniBand sends data over several: both would hang in this one. nccl-also-uses-virtual reports it where
NCCL would use the network.

## What to type
`ncheck plan nodes.txt --for env` prints the settings that keep a job in the working network.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.nccl.link_problems import ALSO, READS, Weight, problems


@cluster_check("NC319", Severity.WARNING, *READS, also=ALSO)
def spare_network_broken(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.SPARE)
