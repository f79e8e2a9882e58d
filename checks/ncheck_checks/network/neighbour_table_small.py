"""The neighbour table is too small for the cluster

## What it finds
Nodes whose neighbour table (ARP for IPv4, neighbour discovery for IPv6) is too small for the addresses of the other
nodes, or would be more than three quarters full with them. A node needs one entry for each address of each other node
in each subnet, on each of its own interfaces there. The limit is net.ipv4.neigh.default.gc_thresh3, by default 1024,
shared by all containers of a machine. Containers cannot read it.

## Why it matters
At the limit the kernel refuses new entries, logs "neighbour: arp_cache: neighbor table overflow!", and packets fail to
be sent. Some pairs of nodes lose contact, and at each attempt other pairs.

## What to type
`sudo sysctl -w net.ipv4.neigh.default.gc_thresh3=8192` on every node, with gc_thresh2 and gc_thresh1 at a half and a
quarter of it, and the same lines in /etc/sysctl.d; `ip neigh show | wc -l` counts the entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, nodes_by_value
from ncheck.facts.net_settings import NetSettingsFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import Nodes, networks

KEPT_FREE = 0.25  # of the table, for routers, storage and other machines in these subnets


@cluster_check("NC354", Severity.WARNING, NicFacts, NetSettingsFacts)
def neighbour_table_small(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    settings = cluster.facts(NetSettingsFacts)
    if hidden := tuple(node for node, facts in settings.items() if not facts.neighbours):
        yield NotApplicable("this network namespace does not show the size of the neighbour table", nodes=hidden)
    for family in (4, 6):
        needed_by_node = _needed(cluster.facts(NicFacts), family)
        sizes = {node: (settings[node].neighbours.get(family), needed) for node, needed in needed_by_node.items()}
        for (size, needed), nodes in nodes_by_value(sizes).items():
            if size is not None and needed > (1 - KEPT_FREE) * size:
                message = f"the IPv{family} neighbour table has {size} entries; the other nodes need {needed}"
                yield Problem(message, _fix(family, needed), nodes=nodes)


def _needed(nodes: Nodes, family: int) -> Mapping[str, int]:
    """Map each node to the entries that it needs for the addresses of all other nodes."""
    needed: Counter[str] = Counter()
    for subnet, members in networks(nodes).items():
        total = sum(len(addresses) for addresses in members.values())
        for node, addresses in members.items() if family == (6 if ":" in subnet else 4) else ():
            interfaces = len({address.interface.name for address in addresses})
            needed[node] += interfaces * (total - len(addresses))
    return needed


def _fix(family: int, needed: int) -> str:
    """Return the command that gives the table at least twice the entries that are needed."""
    size, name = 1 << (4 * needed - 1).bit_length(), f"net.ipv{family}.neigh.default.gc_thresh"
    return f"sudo sysctl -w {name}3={size} {name}2={size // 2} {name}1={size // 4}"
