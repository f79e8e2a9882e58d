"""A node has more or fewer GPUs than the others

## What it finds
Nodes whose number of GPUs differs from the other nodes with the same GPU model, and nodes without GPUs where other
nodes have some. In a tie, both sides are named and none is blamed.

## Why it matters
A GPU fell off the bus, or is hidden from the job. Launchers start a fixed number of ranks per node: one rank finds no
device and dies, and all others wait for it.

## What to type
`nvidia-smi -L` and `lspci -d 10de:` on the named nodes (`amd-smi list` and `lspci -d 1002:` for AMD): a GPU that only
the second command lists needs a reset, a reboot or a repair.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.gpus import GpuFacts


@cluster_check("NC501", Severity.ERROR, GpuFacts, everywhere=True, hardware=True)
def gpu_count_differs(cluster: Cluster) -> Iterator[Problem]:
    gpus = cluster.facts(GpuFacts)
    for models in dict.fromkeys(facts.models for facts in gpus.values()):
        parted = split({node: len(facts.gpus) for node, facts in gpus.items() if facts.models == models})
        if parted:
            message = f"the number of GPUs ({' + '.join(models)}) differs: {parted.summary()}"
            fix = gpus[parted.odd[0]].listed_by
            yield Problem(message, fix, nodes=parted.odd, look=True, summary="the number of GPUs differs")
