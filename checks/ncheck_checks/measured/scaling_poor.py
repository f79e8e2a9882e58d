"""More nodes keep too little of what fewer reach

## What it finds
The bus bandwidth of 2, 4, 8 ... and all nodes, each against the best of fewer nodes. It is made to stay the same as
long as the same links limit it, so each is first held against what its own links should give: from one node to two it
falls by nature. The first size that keeps less than 80 %, the line that evaluations of clusters draw, is a finding.

## Why it matters
What is lost here every rank loses in every step, and more with each node that is added: an oversubscribed switch, a
rail that is left out, or one slow node among the newcomers.

## What to type
`sudo iblinkinfo` shows links between switches that are down or slow, `sudo ethtool -S NAME` what an Ethernet interface
lost or was told to hold back; `ncheck probe nodes.txt --probe-time 300` looks for a slow node with more time.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.probe import ProbeFacts
from ncheck.probe.scaling import poor
from ncheck.topology.hardware import HARDWARE_FACTS, hardware_in


@cluster_check("NC712", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS)
def scaling_poor(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    yield from poor(cluster.facts(ProbeFacts), hardware_in(cluster))
