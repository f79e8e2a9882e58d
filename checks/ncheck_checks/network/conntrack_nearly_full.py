"""A node's table of tracked connections is nearly full

## What it finds
Nodes on which netfilter tracks connections and more than 80 per cent of net.netfilter.nf_conntrack_max are in use.

## Why it matters
When the table is full, packets of new connections are dropped and the kernel log says "nf_conntrack: table full,
dropping packet". Ranks that are already connected go on; a job that starts hangs as if there were a firewall.

## What to type
`sudo sysctl -w net.netfilter.nf_conntrack_max=524288` gives it more; `sudo sysctl net.netfilter.nf_conntrack_count`
tells how many there are, and `ss -s` which of them are this node's own.
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
        yield NotApplicable("no connections are tracked here")
    elif tracked.count > FULL * tracked.most:
        fix = f"sudo sysctl -w net.netfilter.nf_conntrack_max={max(2 * tracked.most, 2 * tracked.count)}"
        yield Problem(f"{tracked.count} of {tracked.most} tracked connections are in use", fix)
