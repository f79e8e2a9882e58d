"""The memory of a GPU is slow

## What it finds
GPUs on which a copy from memory to memory is slower than on others of their model in this cluster: below 0.8 of the
median is an error, below 0.92 a warning. The only GPU of its model is compared with its data sheet, with a wide
margin (`--gpu-test quick`).

## Why it matters
Most kernels of a model wait for memory: such a GPU slows every step of all ranks. A memory clock that is held down,
hot memory or many repaired errors are the usual causes.

## What to type
`nvidia-smi -q -d CLOCK,TEMPERATURE,ECC,ROW_REMAPPER` on the node that the finding names shows memory clock,
temperature of the memory, and its errors.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.gpus import GpuFacts
from ncheck.probe.gpu_test import SLOW_GPUS, GpuTestFacts
from ncheck.probe.gpus_alone import slow_gpus


@cluster_check(
    "NC752",
    Severity.ERROR,
    GpuTestFacts,
    also=(GpuFacts,),
    alone=True,
    explains=(SLOW_NETWORK, SLOW_GPUS),
    hardware=True,
)
def gpu_memory_slow(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    yield from slow_gpus(cluster, ("memory",), "memory", "nvidia-smi -q -d CLOCK,TEMPERATURE,ECC,ROW_REMAPPER")
