"""Interfaces of one subnet have different MTUs

## What it finds
Subnets in which the interfaces of the nodes do not have one MTU: 9000 on most, 1500 on one.

## Why it matters
Connections open and small messages pass. The two ends of a TCP connection settle for the smaller MTU of the two, which
hides the difference; RoCE and UDP do not, and no end knows of a switch port that was set like the odd node: packets of
the larger size are dropped there without a word, and the job hangs at its first large message. Whether they are
dropped is another finding, path-mtu-hole.

## What to type
`sudo ip link set dev eth0 mtu 9000` until the next boot, and the same in the node's network configuration;
`ping -M do -s 8972 NODE` shows whether packets of 9000 bytes pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import SubnetAddress, networks


@cluster_check("NC350", Severity.WARNING, NicFacts)
def mtu_differs(cluster: Cluster) -> Iterator[Problem]:
    for subnet, members in networks(cluster.facts(NicFacts)).items():
        if parted := split({node: _mtus(seats) for node, seats in members.items()}):
            wanted = parted.wanted.split()[-1]
            odd = (seat.interface for node in reversed(parted.odd) for seat in members[node])
            name = next(nic.name for nic in odd if str(nic.mtu) != wanted)
            fix = f"sudo ip link set dev {quote(name)} mtu {wanted}"
            yield Problem(f"the MTU of interfaces in {subnet} differs: {parted.told()}", fix, nodes=parted.odd)


def _mtus(seats: tuple[SubnetAddress, ...]) -> str:
    """Return "9000", or "1500 and 9000" of a node with several interfaces there."""
    return " and ".join(str(mtu) for mtu in sorted({seat.interface.mtu for seat in seats}))
