"""The kernel keeps TCP's buffers small

## What it finds
Nodes where the largest size of net.ipv4.tcp_rmem or net.ipv4.tcp_wmem is below 256 KiB. The kernel's defaults are 6 MiB
and 4 MiB.

## Why it matters
A connection carries one buffer in each round trip. With 4 KiB and 0.1 ms that is 0.3 Gb/s, however fast the link is,
and all other ranks wait for this node. NCCL, gloo and MPI use the kernel's sizes unless they are configured otherwise.

## What to type
`sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456' net.ipv4.tcp_wmem='4096 16384 4194304'` on the node, and remove
the lines that set them: `grep -rn tcp_.mem /etc/sysctl.conf /etc/sysctl.d`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.net_settings import NetSettingsFacts

LEAST = 256 * 1024

DEFAULTS = {"tcp_rmem": "4096 131072 6291456", "tcp_wmem": "4096 16384 4194304"}


@node_check("NC371", Severity.WARNING, NetSettingsFacts)
def tcp_buffers_small(node: NodeView) -> Iterator[Problem | NotApplicable]:
    buffers = node[NetSettingsFacts].buffers
    if not buffers:
        yield NotApplicable("the kernel does not show the sizes of TCP's buffers")
    elif small := {name: most for name, most in buffers.items() if most < LEAST}:
        sizes = " and ".join(f"net.ipv4.{name} {most} bytes" for name, most in small.items())
        settings = " ".join(f"net.ipv4.{name}='{DEFAULTS[name]}'" for name in small)
        yield Problem(f"TCP is slow: {sizes} at most", f"sudo sysctl -w {settings}", summary="TCP's buffers are small")
