"""The reverse path filter drops what other nodes send

## What it finds
Nodes of several interfaces on which the kernel, asked about a packet from another node that comes in by the interface
of the address it is for, says that it would drop it: rp_filter is 1 (the greater of the interface's value and that of
"all"), and the way back to the sender leads by another interface. So it is with two cards in one subnet and no rules
of their own, and with routes that are not the same in both directions. Nothing is sent for this.

## Why it matters
Connections to that address open never, or now and then, as ARP has it. Nothing is logged and no counter that anyone
looks at grows, so the job hangs as if the cable were bad.

## What to type
`sudo sysctl -w net.ipv4.conf.all.rp_filter=2` on the node, and the same line in /etc/sysctl.d: 2 takes what has any way
back. `ip route get FROM_ADDRESS from OWN_ADDRESS` shows the way back. A table for each interface leads it by the right
one: `sudo ip route add 10.1.0.0/24 dev eth1 table 101`, then `sudo ip rule add from 10.1.0.6 table 101`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.arrivals import ArrivalFacts


@node_check("NC352", Severity.WARNING, ArrivalFacts)
def rp_filter_drops(node: NodeView) -> Iterator[Problem]:
    lost = [one for one in node[ArrivalFacts].arrivals if not one.taken]
    if lost:
        names = " and ".join(dict.fromkeys(one.interface for one in lost))
        why = "rp_filter is 1, and the way back is by another interface"
        yield Problem(
            message=f"what other nodes send to {names} is dropped: {why}",
            fix="sudo sysctl -w net.ipv4.conf.all.rp_filter=2",
            evidence=tuple(f"from {one.source} to {one.address} by {one.interface}: dropped" for one in lost),
        )
