"""The reverse path filter drops packets from other nodes

## What it finds
Nodes with several interfaces whose kernel would drop a packet from another node that arrives on the interface with the
packet's destination address. ncheck asks the kernel and sends nothing. The kernel drops the packet if rp_filter is 1
(the larger one of the interface's value and that of "all") and the route back to the sender uses another interface. Two
cards in one subnet without policy routing cause this, and asymmetric routes.

## Why it matters
Connections to that address never open, or only sometimes, depending on ARP. Nothing is logged, so the job hangs as if
the cable were bad.

## What to type
`sudo sysctl -w net.ipv4.conf.all.rp_filter=2` on the node, and the same line in /etc/sysctl.d: 2 accepts a packet if
any route leads back. `ip route get FROM_ADDRESS from OWN_ADDRESS` shows the route back. A routing table for each
interface corrects it: `sudo ip route add 10.1.0.0/24 dev eth1 table 101`, then
`sudo ip rule add from 10.1.0.6 table 101`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.arrivals import ArrivalFacts


@node_check("NC352", Severity.WARNING, ArrivalFacts)
def rp_filter_drops(node: NodeView) -> Iterator[Problem]:
    lost = [packet for packet in node[ArrivalFacts].arrivals if not packet.taken]
    if lost:
        names = " and ".join(dict.fromkeys(packet.interface for packet in lost))
        why = "rp_filter is 1 and the route back uses another interface"
        yield Problem(
            message=f"packets from other nodes to {names} are dropped: {why}",
            fix="sudo sysctl -w net.ipv4.conf.all.rp_filter=2",
            evidence=tuple(
                f"from {packet.source} to {packet.address} by {packet.interface}: dropped" for packet in lost
            ),
        )
