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
from doctor.reasoning.parity import gathered
from doctor.reasoning.subnets import neighbours

KEPT_FREE = 0.25  # for routers, storage, and whoever else is in these subnets


@cluster_check("NC354", Severity.WARNING, NicFacts, NetSettingsFacts)
def neighbour_table_small(cluster: ClusterView) -> Iterator[Problem | Moot]:
    settings = cluster.each(NetSettingsFacts)
    if hidden := tuple(node for node, held in settings.items() if not held.neighbours):
        yield Moot("the size of the neighbour table is not shown in this network namespace", nodes=hidden)
    for family in (4, 6):
        needs = neighbours(cluster.each(NicFacts), family)
        held = {node: (settings[node].neighbours.get(family), needed) for node, needed in needs.items()}
        for (most, needed), nodes in gathered(held).items():
            if most is not None and needed > (1 - KEPT_FREE) * most:
                told = (
                    f"the IPv{family} neighbour table holds {most}, and {needed} addresses of other nodes belong in it"
                )
                yield Problem(told, _raised(family, needed), nodes=nodes)


def _raised(family: int, needed: int) -> str:
    most = 1 << (4 * needed - 1).bit_length()
    where = f"net.ipv{family}.neigh.default.gc_thresh"
    return f"sudo sysctl -w {where}3={most} {where}2={most // 2} {where}1={most // 4}"
