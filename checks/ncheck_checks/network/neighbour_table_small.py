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

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.net_settings import NetSettingsFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import Nodes, networks
from ncheck.parity import gathered

KEPT_FREE = 0.25  # of a table, for routers, storage, and whoever else is in these subnets


@dataclass(frozen=True)
class Tight:
    """Tables of one family (4 or 6) that hold too few entries, by the same numbers on these nodes."""

    family: int
    holds: int
    needed: int
    nodes: tuple[str, ...]

    @property
    def fix(self) -> str:
        """A line that makes room for twice as many and more, to be typed on the node."""
        most, where = 1 << (4 * self.needed - 1).bit_length(), f"net.ipv{self.family}.neigh.default.gc_thresh"
        return f"sudo sysctl -w {where}3={most} {where}2={most // 2} {where}1={most // 4}"


def tight_tables(nodes: Nodes, settings: Mapping[str, NetSettingsFacts]) -> Iterator[Tight]:
    """Yield the tables that are too small; of one that a node is not shown nothing is said."""
    for family in (4, 6):
        needs = _needed(nodes, family)
        held = {node: (settings[node].neighbours.get(family), needed) for node, needed in needs.items()}
        for (holds, needed), names in gathered(held).items():
            if holds is not None and needed > (1 - KEPT_FREE) * holds:
                yield Tight(family, holds, needed, names)


def _needed(nodes: Nodes, family: int) -> Mapping[str, int]:
    """Map each node to the entries that its neighbour table of a family needs for the addresses of all other nodes."""
    needed: Counter[str] = Counter()
    for subnet, members in networks(nodes).items():
        seated = sum(len(held) for held in members.values())
        for node, held in members.items() if family == (6 if ":" in subnet else 4) else ():
            own = len({seat.interface.name for seat in held})
            needed[node] += own * (seated - len(held))
    return needed


@cluster_check("NC354", Severity.WARNING, NicFacts, NetSettingsFacts)
def neighbour_table_small(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    settings = cluster.facts(NetSettingsFacts)
    if hidden := tuple(node for node, held in settings.items() if not held.neighbours):
        yield NotApplicable("the size of the neighbour table is not shown in this network namespace", nodes=hidden)
    for tight in tight_tables(cluster.facts(NicFacts), settings):
        told = f"the IPv{tight.family} neighbour table holds {tight.holds}, and {tight.needed} addresses"
        yield Problem(f"{told} of other nodes belong in it", tight.fix, nodes=tight.nodes)
