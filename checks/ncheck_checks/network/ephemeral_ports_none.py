"""A node has no ephemeral port

## What it finds
Nodes on which net.ipv4.ip_local_reserved_ports excludes all ports of net.ipv4.ip_local_port_range.

## Why it matters
No program on the node can connect to another node, or listen on a port that the kernel picks: "Cannot assign requested
address", "Address already in use". That is how NCCL, gloo and MPI make all of their connections. A login from outside
still works, since it uses a port of the other machine.

## What to type
`sudo sysctl -w net.ipv4.ip_local_reserved_ports=` on the node, and remove the line that sets it from /etc/sysctl.conf
or /etc/sysctl.d: `grep -rn ip_local_reserved_ports /etc/sysctl.conf /etc/sysctl.d`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.net_settings import NetSettingsFacts


@node_check("NC370", Severity.ERROR, NetSettingsFacts, blocks_plan=True)
def ephemeral_ports_none(node: NodeView) -> Iterator[Problem]:
    settings = node[NetSettingsFacts]
    if settings.ports <= 0:
        first, last = settings.ephemeral
        yield Problem(
            f"no ephemeral port is left: all of {first} to {last} are reserved, and no program can connect",
            "sudo sysctl -w net.ipv4.ip_local_reserved_ports=",
            summary="no ephemeral port is left",
        )
