"""A node is slow with every partner, measured without GPUs

## What it finds
The same as node-slow, where pairs were measured by sockets or by gloo: nodes that reach less than half of what is
usual with two partners or more that are fast with others. It is a warning and not an error, for a processor that is
busy with something else slows down sockets as much as a bad link does.

## Why it matters
A job that trains on CPUs, and the start and the checkpoints of every other, waits for the slowest node.

## What to type
`uptime` on the node that is named shows whether it is busy; `sudo ethtool -S NAME` counts what its interface lost, and
`ncheck probe nodes.txt` measures once more.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.probe import ProbeFacts
from ncheck.probe.blame import scene, slow_nodes
from ncheck.topology.hardware import HARDWARE_FACTS, hardware_in


@cluster_check("NC713", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS)
def node_slow_on_cpus(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    yield from slow_nodes(scene(cluster.facts(ProbeFacts), hardware_in(cluster)), on_cpus=True)
