"""A node has more or fewer GPUs

## What it finds
Nodes with another number of GPUs than the nodes with the same GPU model, and nodes without any where others have
some. On a tie both sides are named, and none is blamed.

## Why it matters
A GPU that fell off the bus, or is hidden from the job. Launchers start as many ranks a node as they were told: one
rank finds no device and dies, and all others wait for it.

## What to type
`nvidia-smi -L` and `lspci -d 10de:` on the named nodes: what the second shows and the first does not needs a reset, a
reboot or a hand in the machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.gpus import GpuFacts


@cluster_check("NC501", Severity.ERROR, GpuFacts, everywhere=True)
def gpu_count_differs(cluster: Cluster) -> Iterator[Problem]:
    gpus = cluster.facts(GpuFacts)
    for models in dict.fromkeys(held.models for held in gpus.values()):
        parted = split({node: len(held.gpus) for node, held in gpus.items() if held.models == models})
        if parted:
            message = f"the number of GPUs ({' + '.join(models)}) differs: {parted.told()}"
            yield Problem(message, "nvidia-smi -L", nodes=parted.odd)
