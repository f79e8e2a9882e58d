"""NCCL would pick a network in which nodes do not reach each other

## What it finds
Nodes whose NCCL, asked itself or by its rules, starts at an address in a subnet where some of them do not reach each
other, while in another subnet all do. What is broken where no subnet carries them all has checks of its own
(link-filtered and its like), and so has an interface that leads nowhere (nccl-would-pick-virtual).

## Why it matters
NCCL does not try whether its choice works: it takes the first interface in the kernel's order. The job hangs before its
first step, or at its first large message, on nodes that could work together.

## What to type
`export NCCL_SOCKET_IFNAME='=eth1'` on all nodes, with the name that leads into the network that carries;
`ncheck plan nodes.txt --for env` prints it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.network.link_problems import ALSO, READS, Weight, problems


@cluster_check("NC307", Severity.ERROR, *READS, also=ALSO, mended_by="NCCL_SOCKET_IFNAME")
def nccl_picks_broken_network(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.PICKED)
