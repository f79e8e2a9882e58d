"""A collective operation is slower than its links allow

## What it finds
Bus bandwidths from 0.75 to 0.85 of what the detected links should give: of each node by itself, of its best pair, and
of all nodes, in all-reduce and each other operation of --op by itself. Operations that are low on the same nodes are
one finding; it says which are not. The expected bandwidth is computed from NVLinks, NVLS, PCIe and the rails in use, or
given with --expect. The finding names the limiting component, and observed facts that lower the limit, such as a
missing rail. Two nodes are expected at twice their NICs only where NCCL joins NVLS of both by a tree; nodes of one
NVLink domain at their NVLinks; `at least` says that NCCL may reach more. All-gather, reduce-scatter and broadcast are
expected at the NICs of a node between any number of nodes, and an all-to-all at the NIC of each GPU for the part of the
data that leaves the node; for send-recv over NICs above 200 Gb/s, and between GPUs without NVSwitches, nothing is
expected. Where part of the chain is unknown nothing is expected, and nodes are only compared with each other; a node
for which alone nothing is expected is unknown. Plain sockets below 0.75 are reported here too, because a busy machine
easily halves their bandwidth.

## Why it matters
Healthy systems reach 0.93 and more. What is missing is lost in every step of the job.

## What to type
The command of the finding. `ncheck probe nodes.txt --sizes 1G,4G,16G` measures larger messages. If you know what the
hardware can reach, pass it with `--expect BUSBW`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.model.report import Standing
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.links.hardware import HARDWARE_FACTS, hardware_in
from ncheck.probe.shortfalls import compared, shortfalls, without_expectation, without_measurement


@cluster_check("NC720", Severity.WARNING, ProbeFacts, also=HARDWARE_FACTS, alone=True)
def bandwidth_low(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    probed, hardware = cluster.facts(ProbeFacts), hardware_in(cluster)
    comparisons = compared(probed, hardware)
    yield from shortfalls(comparisons, hardware, Standing.LOW)
    yield from without_expectation(comparisons, hardware)
    yield from without_measurement(probed)
