"""Nodes have different GPU models

## What it finds
Nodes whose GPUs are of another model than those of the other nodes. Drivers, topologies, NICs and bandwidths are then
compared only within each model; NCCL, MPI and frameworks must be the same on all. Different models inside one node are
not reported if all nodes have the same ones.

## Why it matters
A job on both models runs at the speed of the slower one and within the smaller memory, and a binary built for one model
may not run on the other. Often a node of another job was listed by mistake.

## What to type
`nvidia-smi -L` on the named nodes. If the mix is intended: `ncheck --ignore gpu-model-differs nodes.txt`.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.gpus import GpuFacts


@parity_check(
    "NC502", Severity.WARNING, GpuFacts, what="the GPU model differs", fix=lambda gpus: gpus.listed_by, look=True,
)  # fmt: skip
def gpu_model_differs(gpus: GpuFacts) -> str:
    return " + ".join(gpus.models)
