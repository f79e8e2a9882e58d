"""The loopback interface is down

## What it finds
Nodes on which the interface lo is down or lacks the address 127.0.0.1.

## Why it matters
Ranks on one node meet at 127.0.0.1: gloo, the launchers' daemons, Open MPI's own server and many debuggers. Without lo
even a connection of the node to its own address fails. The node answers ssh and looks healthy from outside.

## What to type
`sudo ip link set lo up` sets the address as well. A script that makes network namespaces or containers must do the
same: in a new namespace lo is down.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.nics import Kind, NicFacts


@node_check("NC363", Severity.ERROR, NicFacts)
def loopback_down(node: NodeView) -> Iterator[Problem]:
    for nic in node[NicFacts].interfaces:
        if nic.kind is Kind.LOOPBACK:
            if not nic.up:
                yield Problem("lo is down", "sudo ip link set lo up")
            elif "127.0.0.1" not in {address.ip for address in nic.addresses}:
                yield Problem("lo has no address 127.0.0.1", "sudo ip address add 127.0.0.1/8 dev lo")
