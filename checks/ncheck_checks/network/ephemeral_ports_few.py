"""A node has few ephemeral ports, or none

## What it finds
Nodes with fewer than 10000 ports for connections: net.ipv4.ip_local_port_range without the ports in
net.ipv4.ip_local_reserved_ports. The default is 28232. A node without any is an error.

## Why it matters
Every connection of NCCL, gloo and MPI uses such a port at one end, and a closed connection keeps its port for a minute.
A job with many ranks, or one that restarts often, fails with "Cannot assign requested address". Where all ports are
reserved, no program on the node can connect to another one; a login from outside still works.

## What to type
`sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'` on the node, and the same line in /etc/sysctl.d. If the
range is small because a firewall allows only these ports, allow all ports between the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.net_settings import NetSettingsFacts

LEAST = 10000
FREE = "sudo sysctl -w net.ipv4.ip_local_reserved_ports="
WIDEN = "sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'"


@node_check("NC355", Severity.ERROR, NetSettingsFacts, blocks_plan=True)
def ephemeral_ports_few(node: NodeView) -> Iterator[Problem]:
    settings = node[NetSettingsFacts]
    first, last = settings.ephemeral
    if settings.ports <= 0:
        message = f"no ephemeral port is left: all of {first} to {last} are reserved, and no program can connect"
        yield Problem(message, FREE, summary="no ephemeral port is left")
    elif settings.ports < LEAST:
        reserved = ", some of them reserved" if settings.ports < last - first + 1 else ""
        message = f"only {settings.ports} ephemeral ports: {first} to {last}{reserved}"
        yield Problem(message, FREE if last - first >= LEAST else WIDEN, severity=Severity.WARNING)
