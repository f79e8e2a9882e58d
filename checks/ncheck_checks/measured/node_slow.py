"""A node is slow with every partner

## What it finds
Nodes whose pairs are all slow, or all fail, with at least two partners, of which one or more are fast with others. One
rank a node does the all-reduce, so that one NIC carries it. Slow is below 0.8 of what is usual: of what the links of
the pair should give where that is known, else of what healthy pairs reach here. Where NCCL goes by sockets and nobody
knows what they should give it is below 0.5, for a processor with something else to do slows them down as well. The
evidence says whether the node is slow by itself, too, and which of its rails carried nothing. Where as many are slow as
fast they are told as one group.

## Why it matters
All ranks wait for the slowest in every step: one node at half of the speed halves the speed of the job.

## What to type
What the finding says, on the node that is named: `nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE` shows a GPU that is
held back, `sudo ibstat HCA PORT` a port at a lower rate. `ncheck probe nodes.txt` then measures once more.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.probe import ProbeFacts
from ncheck.probe.blame import scene, slow_nodes
from ncheck.topology.hardware import HARDWARE_FACTS, hardware_in


@cluster_check("NC710", Severity.ERROR, ProbeFacts, also=HARDWARE_FACTS)
def node_slow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    yield from slow_nodes(scene(cluster.facts(ProbeFacts), hardware_in(cluster)), on_cpus=False)
