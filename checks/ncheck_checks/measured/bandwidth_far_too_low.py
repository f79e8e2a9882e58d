"""A collective operation is far slower than its links allow

## What it finds
Bus bandwidths below 0.75 of what the detected links should give (bandwidth-low reports those from 0.75 to 0.85, and
plain sockets at any lower share). A bandwidth of exactly (m-1)/m of what m rails should give means that one rail
carries nothing. A node without any expected bandwidth, while other nodes of its GPU model have one, is unknown.

## Why it matters
No healthy system is so far below. Something is broken, switched off, or carries data that it should not.

## What to type
The command of the finding: `nvidia-smi nvlink -s` for NVLinks, `nvidia-imex-ctl -N` for those between nodes, `sudo
iblinkinfo` for the fabric, `sudo modprobe nvidia_peermem` if GPUDirect RDMA is off. If you know what the hardware can
reach, pass it with `--expect BUSBW`. If the evidence says `noisy`, something else may have used the links: `ncheck
probe nodes.txt --repeats 50 --probe-time 300`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.model.report import Standing
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.links.hardware import HARDWARE_FACTS, hardware_in
from ncheck.probe.shortfalls import compared, shortfalls, without_expectation, without_measurement


@cluster_check("NC721", Severity.ERROR, ProbeFacts, also=HARDWARE_FACTS, alone=True)
def bandwidth_far_too_low(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    probed, hardware = cluster.facts(ProbeFacts), hardware_in(cluster)
    comparisons = compared(probed, hardware)
    yield from shortfalls(comparisons, hardware, Standing.FAR_TOO_LOW)
    yield from without_expectation(comparisons, hardware)
    yield from without_measurement(probed)
