"""A node is slow with every partner, measured without GPUs

## What it finds
The same as node-slow, for pairs measured with sockets or gloo: nodes that reach less than half of what is usual with at
least two partners that are fast with others, and with one of these once more, while nothing else is measured. This is a
warning and not an error, because a busy processor slows sockets down as much as a bad link does.

## Why it matters
A job that trains on CPUs waits for the slowest node, and so do the start and the checkpoints of every job.

## What to type
On the node: `uptime` shows whether it is busy, `sudo ethtool -S NAME` what its interface lost. Then measure again:
`ncheck probe nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.gpu_test import SLOW_MEMBER
from ncheck.probe.links.hardware import HARDWARE_FACTS, hardware_in
from ncheck.probe.slow_nodes import search_slow, slow_nodes


@cluster_check("NC713", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS, explains=(SLOW_NETWORK, SLOW_MEMBER))
def node_slow_on_cpus(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    yield from slow_nodes(search_slow(cluster.facts(ProbeFacts), hardware_in(cluster)), on_cpus=True)
