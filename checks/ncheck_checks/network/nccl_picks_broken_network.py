"""NCCL would pick a network in which nodes cannot reach each other

## What it finds
Nodes on which NCCL picks an address in a subnet where some nodes cannot reach each other, although another subnet
connects all nodes. ncheck asks NCCL itself or applies its rules. If no subnet connects all nodes, link-filtered and the
similar checks report the broken links. nccl-would-pick-virtual reports interfaces that lead nowhere.

## Why it matters
NCCL does not test its choice: it takes the first interface in the kernel's order. The job hangs before its first step,
or at its first large message, on nodes that could work together.

## What to type
`ncheck plan nodes.txt` prints the command that starts the job with the right variable. By hand, with the second "=" for
an exact name: `mpirun -x NCCL_SOCKET_IFNAME==eth0` (an exported variable alone does not reach the ranks of mpirun), or
the line `NCCL_SOCKET_IFNAME==eth0` in ~/.nccl.conf. `ip -br address` shows which interface is in which network.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.nccl.link_problems import ALSO, READS, Weight, problems


@cluster_check("NC307", Severity.ERROR, *READS, also=ALSO, mended_by="NCCL_SOCKET_IFNAME")
def nccl_picks_broken_network(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.PICKED)
