"""MIG is enabled on some GPUs only

## What it finds
Nodes with GPUs in MIG mode (a GPU is divided into instances), where other GPUs of the same model are not. mig-enabled
reports clusters in which all are.

## Why it matters
A process sees only one MIG instance, or no GPU at all where none was made, and instances have no NVLink and no P2P. A
job that expects whole GPUs fails at init, or runs out of memory on one rank.

## What to type
`nvidia-smi -L` lists the instances. To have the whole GPU: `sudo nvidia-smi -mig 0`, while nobody uses it. Or leave the
node out of the job.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.gpu_health import GpuHealthFacts, unread_nodes


@cluster_check("NC527", Severity.ERROR, GpuHealthFacts, by_kind=True, alone=True)
def mig_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    health = cluster.facts(GpuHealthFacts)
    yield from unread_nodes(health, "the MIG mode", "mig")
    divided = {node: [gpu.called for gpu in facts.gpus if gpu.mig] for node, facts in health.items()}
    if all(gpu.mig for facts in health.values() for gpu in facts.gpus if gpu.mig is not None):
        return
    for node, gpus in divided.items():
        if gpus:
            message = f"MIG is enabled on {', '.join(gpus)} of {node}, and not on other GPUs of this model"
            yield Problem(message, "nvidia-smi -L", nodes=(node,), look=True, summary="MIG is enabled on some GPUs")
