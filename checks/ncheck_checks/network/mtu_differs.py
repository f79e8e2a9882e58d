"""Interfaces in one subnet have different MTUs

## What it finds
Subnets in which the interfaces of the nodes have different MTUs: 9000 on most, 1500 on one.

## Why it matters
Connections open and small messages pass. TCP uses the smaller MTU of the two ends, which hides the difference; RoCE and
UDP do not. Neither end knows the MTU of a switch port: if it is the smaller one, the switch silently drops larger
packets, and the job hangs at its first large message. If packets are dropped, path-mtu-hole reports it.

## What to type
`sudo ip link set dev eth0 mtu 9000` until the next boot, and the same in the node's network configuration;
`ping -M do -s 8972 NODE` shows whether packets of 9000 bytes pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.nics import NicFacts, SubnetAddress
from ncheck.network.subnets import networks


@cluster_check("NC350", Severity.WARNING, NicFacts)
def mtu_differs(cluster: Cluster) -> Iterator[Problem]:
    for subnet, members in networks(cluster.facts(NicFacts)).items():
        if parted := split({node: _mtus(addresses) for node, addresses in members.items()}):
            wanted = parted.wanted.split()[-1]
            odd = (address.interface for node in reversed(parted.odd) for address in members[node])
            name = next(nic.name for nic in odd if str(nic.mtu) != wanted)
            fix = f"sudo ip link set dev {quote(name)} mtu {wanted}"
            yield Problem(f"the MTU of interfaces in {subnet} differs: {parted.summary()}", fix, nodes=parted.odd)


def _mtus(addresses: tuple[SubnetAddress, ...]) -> str:
    """Return "9000", or "1500 and 9000" for a node with several interfaces in the subnet."""
    return " and ".join(str(mtu) for mtu in sorted({address.interface.mtu for address in addresses}))
