"""The link between a GPU and its host is slow

## What it finds
GPUs to or from which a copy of pinned host memory is slower than for others of their model in this cluster: below 0.8
of the median is an error, below 0.92 a warning. One GPU of a node copies at a time, because two often share a link of
a PCIe switch, from memory of its own NUMA node (`--gpu-test quick`).

## Why it matters
Batches arrive through this link, and without GPUDirect RDMA so does everything that other nodes send. The usual
causes are a PCIe link that is narrower or slower than it could be, and a GPU on the wrong riser.

## What to type
`nvidia-smi -q -d PCIE` on the node that the finding names shows generation and width of the link, now and at most.
Look while the GPU is busy: at rest the generation is low on every GPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.gpus import GpuFacts
from ncheck.probe.gpu_test import SLOW_GPUS, SLOW_NODE, GpuTestFacts
from ncheck.probe.gpus_alone import slow_gpus

_FIX = (
    "nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,"
    "pcie.link.width.max --format=csv"
)


@cluster_check(
    "NC753",
    Severity.ERROR,
    GpuTestFacts,
    also=(GpuFacts,),
    alone=True,
    explains=(SLOW_NETWORK, SLOW_GPUS, SLOW_NODE),
    hardware=True,
)
def gpu_host_link_slow(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    yield from slow_gpus(cluster, ("to_device", "to_host"), "host link", _FIX)
