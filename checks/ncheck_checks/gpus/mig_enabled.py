"""MIG is enabled on all GPUs

## What it finds
Clusters whose GPUs are all in MIG mode. mig-differs reports those in which some are.

## Why it matters
MIG divides a GPU for several small programs. A process sees one instance only, and instances have no NVLink and no P2P:
several ranks on one GPU end with NCCL's "Duplicate GPU detected". It is no fault where each node runs programs of one
GPU.

## What to type
`nvidia-smi -L` lists the instances. For a job on whole GPUs: `sudo nvidia-smi -mig 0` on all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.gpu_health import GpuHealthFacts


@cluster_check("NC528", Severity.INFO, GpuHealthFacts, by_kind=True, alone=True)
def mig_enabled(cluster: Cluster) -> Iterator[Problem]:
    gpus = [gpu for facts in cluster.facts(GpuHealthFacts).values() for gpu in facts.gpus]
    if gpus and all(gpu.mig for gpu in gpus):
        message = "MIG is enabled on all GPUs: a rank gets a part of a GPU, without NVLink and P2P"
        yield Problem(message, "nvidia-smi -L", nodes=cluster.names, look=True, summary="MIG is enabled")
