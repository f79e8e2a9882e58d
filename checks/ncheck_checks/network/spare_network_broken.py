"""A network that no job needs does not carry

## What it finds
Nodes that do not reach each other in some subnet, in whatever way, while another subnet joins them all, or while not
all nodes have an address there. An interface that is up and leads nowhere looks so.

## Why it matters
Nothing is lost where the job is kept to the network that carries. Without a word about it, Open MPI uses every network
that it finds, and NCCL without InfiniBand sends data over several: both would hang in this one.

## What to type
`ncheck plan nodes.txt --for env` prints the settings that keep a job where all nodes reach each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.network.link_problems import ALSO, READS, Weight, problems


@cluster_check("NC319", Severity.WARNING, *READS, also=ALSO)
def spare_network_broken(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.SPARE)
