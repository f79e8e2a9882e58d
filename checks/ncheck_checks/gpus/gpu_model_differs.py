"""Nodes have different GPU models

## What it finds
Nodes whose GPUs are of another model than those of the rest. Versions, drivers and topologies are then compared
within each model only. Several models inside one node are no finding where all nodes hold the same ones.

## Why it matters
A job over both runs at the pace of the slower model and within the smaller memory, and a binary built for one may not
run on the other. A node meant for another job is often listed by mistake.

## What to type
`nvidia-smi -L` on the named nodes. If the mix is meant: `ncheck --ignore gpu-model-differs nodes.txt`.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.gpus import GpuFacts


@parity_check(
    "NC502", Severity.WARNING, GpuFacts, by_kind=False, what="the GPU model differs", fix="nvidia-smi -L",
)  # fmt: skip
def gpu_model_differs(gpus: GpuFacts) -> str:
    return " + ".join(gpus.models)
