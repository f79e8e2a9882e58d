"""A node has few ephemeral ports

## What it finds
Nodes with fewer than 10000 ports for connections: net.ipv4.ip_local_port_range without the ports in
net.ipv4.ip_local_reserved_ports. The default is 28232. If none is left, ephemeral-ports-none reports it.

## Why it matters
Every connection of NCCL, gloo and MPI uses such a port at one end, and a closed connection keeps its port for a minute.
A job with many ranks, or one that restarts often, fails with "Cannot assign requested address".

## What to type
`sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'` on the node, and the same line in /etc/sysctl.d. If the
range is small because a firewall allows only these ports, allow all ports between the nodes.
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
    if 0 < settings.ports < LEAST:
        first, last = settings.ephemeral
        reserved = ", some of them reserved" if settings.ports < last - first + 1 else ""
        message = f"only {settings.ports} ephemeral ports: {first} to {last}{reserved}"
        fix = "sudo sysctl -w net.ipv4.ip_local_reserved_ports=" if last - first >= LEAST else FIX
        yield Problem(message, fix)
