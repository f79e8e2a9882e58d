"""A node's neighbour table is too small for the cluster

## What it finds
Nodes whose table of neighbours (ARP for IPv4, neighbour discovery for IPv6) holds at most as many entries as there
are addresses of other nodes to keep in it, or leaves less than a quarter of itself for all else: an entry for each
address of each other node in each subnet that the node is in, by each of its own interfaces there. The most is
net.ipv4.neigh.default.gc_thresh3, 1024 by default, and for all containers of a machine together. A container is not
shown it.

## Why it matters
At the limit the kernel refuses new entries: "neighbour: arp_cache: neighbor table overflow!" in its log, and sends
that fail. Some pairs of nodes lose each other, at each try another few.

## What to type
`sudo sysctl -w net.ipv4.neigh.default.gc_thresh3=8192` on every node, gc_thresh2 and gc_thresh1 at a half and a
quarter of it, and the same in /etc/sysctl.d; `ip neigh show | wc -l` counts what is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from doctor import ClusterView, Moot, Problem, Severity, cluster_check
from doctor.model.facts import NetSettingsFacts, NicFacts
from doctor.reasoning.neighbours import tight_tables


@cluster_check("NC354", Severity.WARNING, NicFacts, NetSettingsFacts)
def neighbour_table_small(cluster: ClusterView) -> Iterator[Problem | Moot]:
    settings = cluster.each(NetSettingsFacts)
    if hidden := tuple(node for node, held in settings.items() if not held.neighbours):
        yield Moot("the size of the neighbour table is not shown in this network namespace", nodes=hidden)
    for tight in tight_tables(cluster.each(NicFacts), settings):
        told = f"the IPv{tight.family} neighbour table holds {tight.holds}, and {tight.needed} addresses"
        yield Problem(f"{told} of other nodes belong in it", tight.fix, nodes=tight.nodes)
