"""Large packets are lost between nodes

## What it finds
Pairs of nodes that connect and exchange small messages, but lose a message of 256 KiB in the direction that is named.
One end or both send packets that are too large for something between them, and no error reaches the sender: MTU 9000 on
hosts and 1500 on a switch port, a tunnel, or a firewall that drops ICMP. It is reported if no other subnet connects all
nodes.

## Why it matters
Everything starts: logins, rendezvous, the first small collectives. The job hangs at the first large message, without an
error for a quarter of an hour or longer.

## What to type
`ping -M do -s 8972 10.1.0.7` shows the loss: 8972 is an MTU of 9000 minus 28 bytes of headers. Raise the MTU of the
devices between the nodes, or `sudo ip link set dev eth1 mtu 1500` on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.nccl.link_problems import ALSO, READS, Weight, problems
from ncheck.network.link_faults import FaultKind


@cluster_check("NC314", Severity.ERROR, *READS, also=ALSO)
def path_mtu_hole(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, FaultKind.LARGE_LOST)
