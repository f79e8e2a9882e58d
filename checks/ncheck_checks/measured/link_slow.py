"""The way between two nodes is slow

## What it finds
Pairs that are slow, or fail, each time they are tried, while both of their nodes are fast with others: below 0.8 of
what is usual there, over sockets without a known expectation below half. Where all such ways lie between two groups of
nodes, the groups are named.

## Why it matters
Ring and tree lead over some of these ways, and all ranks wait for them; which of them is by chance of the order.

## What to type
`sudo iblinkinfo` marks links of the fabric that could run wider or faster; over Ethernet `tracepath -n NODE` shows the
way and its MTU. Between two groups it is the switch, or the cables, that join them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.probe import ProbeFacts
from ncheck.probe.blame import scene, slow_links
from ncheck.topology.hardware import HARDWARE_FACTS, hardware_in


@cluster_check("NC711", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS)
def link_slow(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    yield from slow_links(scene(cluster.facts(ProbeFacts), hardware_in(cluster)))
