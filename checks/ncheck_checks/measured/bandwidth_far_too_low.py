"""The all-reduce is far slower than its links allow

## What it finds
Bus bandwidths below 0.75 of what the detected links should give, as bandwidth-low finds those below 0.85. A bandwidth
that is exactly (m-1)/m of what m rails should give is one rail that carries nothing.

## Why it matters
No healthy system is so far below: something is broken, switched off, or carries data that nobody meant it to carry.

## What to type
What the finding says: `nvidia-smi nvlink -s` for NVLinks, `sudo iblinkinfo` for the fabric, `sudo modprobe
nvidia_peermem` where GPUDirect RDMA is off. `--expect BUSBW` puts in what you know that it can reach.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.probe import ProbeFacts
from ncheck.model.report import FAR_TOO_LOW
from ncheck.probe.shortfalls import held, short, unexpected
from ncheck.topology.hardware import HARDWARE_FACTS, hardware_in


@cluster_check("NC721", Severity.ERROR, ProbeFacts, also=HARDWARE_FACTS, alone=True)
def bandwidth_far_too_low(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    hardware = hardware_in(cluster)
    judged = held(cluster.facts(ProbeFacts), hardware)
    yield from short(judged, hardware, 0.0, FAR_TOO_LOW)
    if moot := unexpected(judged):
        yield moot
