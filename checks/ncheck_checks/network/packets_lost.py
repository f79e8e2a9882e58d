"""Packets are lost between nodes

## What it finds
Links on which more than 2 % of the packets are lost, by the kernel's own count of what TCP had to send again. Each was
measured twice: with the other links, and alone. Packets that were sent again needlessly do not count. If all links of
a network lose packets, the network is busy or broken as a whole: that is unknown, and no node is named.

## Why it matters
Everything works, and is slow: with 5 % of loss TCP carries a small part of what the link can, and all ranks wait for
the slowest one. A bad cable or transceiver, a full switch buffer, a rate limit or a firewall rule does this.

## What to type
`ip -s -s link` on the named nodes shows errors and drops of each interface, `sudo ethtool -S NAME` those of the card.
Clean or replace the cable first; then look at the switch port.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.links import LinkFacts
from ncheck.network.losses import lossy


@cluster_check("NC365", Severity.ERROR, LinkFacts)
def packets_lost(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    links = cluster.facts(LinkFacts)
    if old := tuple(node for node, facts in links.items() if not facts.counts_losses):
        yield NotApplicable("the kernel does not count what TCP sends again (Linux before 4.6)", old)
    for found in lossy(links):
        if found.everywhere:
            yield Inconclusive(f"{found.summary}: the network is busy, or broken as a whole", found.nodes)
        else:
            yield Problem(found.summary, "ip -s -s link", found.evidence, found.nodes, look=True)
