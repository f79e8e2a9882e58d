"""The all-reduce is slower than its links allow

## What it finds
Bus bandwidths from 0.75 to 0.85 of what the detected links should give: of each node by itself, of its best pair, and
of all nodes. What is expected is computed from NVLinks, NVLS, PCIe and the rails that are in use, or named by --expect.
The finding tells the term that limits it, and the observed fact that lowers it, such as a rail that is missing. Where a
part of the chain is not known nothing is expected, and nodes are only compared with one another.

## Why it matters
Healthy systems reach 0.93 and more of it. What is missing is lost in every step of the job.

## What to type
What the finding says; `ncheck probe nodes.txt --sizes 1G,4G,16G` measures larger messages, and `--expect BUSBW` puts in
what you know that it can reach.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.probe import ProbeFacts
from ncheck.model.report import FAR_TOO_LOW, LOW
from ncheck.probe.shortfalls import held, short, unexpected
from ncheck.topology.hardware import HARDWARE_FACTS, hardware_in


@cluster_check("NC720", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS, alone=True)
def bandwidth_low(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    hardware = hardware_in(cluster)
    judged = held(cluster.facts(ProbeFacts), hardware)
    yield from short(judged, hardware, FAR_TOO_LOW, LOW)
    if moot := unexpected(judged):
        yield moot
