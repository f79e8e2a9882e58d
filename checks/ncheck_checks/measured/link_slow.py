"""The link between two nodes is slow

## What it finds
Pairs that are slow or fail in every test, while both nodes are fast with others. Slow means below 0.8 of what is usual
in this cluster; over sockets without an expected bandwidth, below half. If all slow links are between two groups of
nodes, the finding names the groups; where more tests show that the trouble is between them, NC736 names them instead.
Each operation of --op is judged by itself: a link that several show is one finding, and one that only all-to-all shows
is named as such.

## Why it matters
Rings and trees use some of these links, depending on the order of the nodes, and all ranks wait for them.

## What to type
`sudo iblinkinfo` marks InfiniBand links that could run wider or faster. On Ethernet `tracepath -n NODE` shows the path
and its MTU. Between two groups, check the switch or the cables that connect them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.probe.facts import GroupFacts, ProbeFacts
from ncheck.probe.links.hardware import HARDWARE_FACTS, hardware_in
from ncheck.probe.slow_nodes import search_slow, slow_links


@cluster_check(
    "NC711", Severity.WARNING, ProbeFacts, also=(*HARDWARE_FACTS, GroupFacts), explains=SLOW_NETWORK, hardware=True
)
def link_slow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    named = cluster.facts(GroupFacts).values()
    yield from slow_links(search_slow(cluster.facts(ProbeFacts), hardware_in(cluster), named))
