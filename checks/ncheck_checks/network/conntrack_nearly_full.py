"""The connection tracking table is nearly full

## What it finds
Nodes on which netfilter tracks connections and more than 80 % of net.netfilter.nf_conntrack_max are in use.

## Why it matters
When the table is full, the kernel drops the packets of new connections and logs "nf_conntrack: table full, dropping
packet". Ranks that are already connected continue; a job that starts hangs as if a firewall blocked it.

## What to type
`sudo sysctl -w net.netfilter.nf_conntrack_max=524288` enlarges the table;
`sudo sysctl net.netfilter.nf_conntrack_count` shows its use, and `ss -s` the node's own connections.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.net_settings import NetSettingsFacts

FULL = 0.8


@node_check("NC362", Severity.WARNING, NetSettingsFacts)
def conntrack_nearly_full(node: NodeView) -> Iterator[Problem | NotApplicable]:
    tracked = node[NetSettingsFacts].conntrack
    if tracked is None:
        yield NotApplicable("netfilter does not track connections")
    elif tracked.count > FULL * tracked.most:
        fix = f"sudo sysctl -w net.netfilter.nf_conntrack_max={max(2 * tracked.most, 2 * tracked.count)}"
        yield Problem(
            f"{tracked.count} of {tracked.most} entries of the connection tracking table are in use", fix,
            summary="the connection tracking table is nearly full",
        )  # fmt: skip
