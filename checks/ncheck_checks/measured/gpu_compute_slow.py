"""A GPU computes slowly

## What it finds
GPUs that alone, before any communication, compute less than others of their model in this cluster: below 0.8 of the
median is an error, below 0.92 a warning. Measured are a loop of single-precision operations and, where the job has
cuBLAS, matrix products in BF16 and FP32. The only GPU of its model is compared with its data sheet, with a wide
margin: 60 % of it, less where the power cap holds its clock down, and 30 % for boards of up to 150 W
(`--gpu-test quick`).

## Why it matters
All ranks wait for the slowest GPU in every step, and no all-reduce test shows it: the network is fast.

## What to type
`nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE` on the node that the finding names shows clocks, power limit,
temperature and what slows the GPU down. Compare these with a node that is not named.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.gpus import GpuFacts
from ncheck.probe.gpu_test import SLOW_GPUS, GpuTestFacts
from ncheck.probe.gpus_alone import slow_gpus


@cluster_check(
    "NC751",
    Severity.ERROR,
    GpuTestFacts,
    also=(GpuFacts,),
    alone=True,
    explains=(SLOW_NETWORK, SLOW_GPUS),
    hardware=True,
)
def gpu_compute_slow(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    yield from slow_gpus(
        cluster, ("fma", "bf16", "fp32"), "computing", "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE"
    )
