"""The GPUs of a node are slower together than those of its peers

## What it finds
Nodes of one GPU model of which nobody can tell what they should reach inside, because a part of the chain is not known
(a new model, PCIe links that cannot be read): those below 0.85 of what is usual among them.

## Why it matters
Equal nodes differ by a few percent. One that is further below has a GPU that is held back, or links that are broken.

## What to type
`nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE` on the node shows what holds its GPUs back, `nvidia-smi topo -m` how
they are connected.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.probe import ProbeFacts
from ncheck.probe.shortfalls import below_peers
from ncheck.topology.hardware import HARDWARE_FACTS, hardware_in


@cluster_check("NC722", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS, by_kind=True)
def bandwidth_below_peers(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    yield from below_peers(cluster.facts(ProbeFacts), hardware_in(cluster))
