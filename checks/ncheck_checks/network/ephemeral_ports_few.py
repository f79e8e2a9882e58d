"""A node has few ports for connections

## What it finds
Nodes that give fewer than 10000 ports to connections: net.ipv4.ip_local_port_range, less what
net.ipv4.ip_local_reserved_ports takes out of it. The default is 28232.

## Why it matters
Every connection of NCCL, gloo and MPI listens on such a port, or leaves by one, and one that has ended keeps its port
for a minute. A job of many ranks, or a few that restart, meets "Cannot assign requested address".

## What to type
`sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'` on the node, and the same line in /etc/sysctl.d. If the
range is small so that a firewall can be open for just these ports, open it between the nodes for all.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.net_settings import NetSettingsFacts

LEAST = 10000


FIX = "sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'"


@node_check("NC355", Severity.WARNING, NetSettingsFacts)
def ephemeral_ports_few(node: NodeView) -> Iterator[Problem]:
    settings = node[NetSettingsFacts]
    if settings.ports < LEAST:
        first, last = settings.ephemeral
        reserved = ", and parts of them are reserved" if settings.ports < last - first + 1 else ""
        few = f"connections have {max(settings.ports, 0)} ports: {first} to {last}{reserved}"
        fix = "sudo sysctl -w net.ipv4.ip_local_reserved_ports=" if last - first >= LEAST else FIX
        yield Problem(few, fix)
