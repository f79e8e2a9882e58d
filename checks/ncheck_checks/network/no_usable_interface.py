"""A node has no interface that a job could use

## What it finds
Nodes on which no interface on a real network (a card, a bond, a VLAN, a bridge, InfiniBand) is up, has a link and has
an address beyond link-local. In a container, its only external interface counts. A single node needs
none, however it is reached.

## Why it matters
Ranks meet over TCP even if data goes over InfiniBand. With only lo and docker0, NCCL picks one of these and publishes
an address that no other node can reach.

## What to type
`ip -br address` shows names, states and addresses; `sudo ip link set NAME up` enables one; `sudo ethtool NAME` shows
whether a cable is connected.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.nics import Interface, NicFacts
from ncheck.network.subnets import subnet_addresses


@cluster_check("NC301", Severity.ERROR, NicFacts)
def no_usable_interface(cluster: Cluster) -> Iterator[Problem]:
    for node, nics in cluster.facts(NicFacts).items():
        if not any(subnet_addresses(nics)):
            evidence = tuple(_summary(nic) for nic in nics.interfaces)
            yield Problem("no interface that a job could use", "ip -br address", evidence, (node,), look=True)


def _summary(nic: Interface) -> str:
    state = ("up" if nic.running else "up, no carrier") if nic.up else "down"
    return f"{nic.name}: {nic.kind.value}, {state}, {', '.join(a.ip for a in nic.addresses) or 'no address'}"
