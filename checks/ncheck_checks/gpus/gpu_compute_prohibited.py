"""A GPU lets no program compute

## What it finds
GPUs whose compute mode is "Prohibited".

## Why it matters
Every program that opens such a GPU ends with "CUDA-capable device(s) is/are busy or unavailable" (CUDA error 46); the
other ranks wait for it.

## What to type
`sudo nvidia-smi -c DEFAULT` on the named nodes. Who set it, may have meant to keep the GPU free: ask first.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.gpu_health import GpuHealthFacts, nothing_to_judge

_PROHIBITED = 2  # NVML_COMPUTEMODE_PROHIBITED


@node_check("NC526", Severity.ERROR, GpuHealthFacts, blocks_plan=True)
def gpu_compute_prohibited(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    facts = node[GpuHealthFacts]
    closed = [gpu.called for gpu in facts.gpus if gpu.compute_mode == _PROHIBITED]
    if closed:
        message = f"the compute mode is Prohibited: no program can use {', '.join(closed)}"
        yield Problem(message, "sudo nvidia-smi -c DEFAULT", summary="GPUs let no program compute")
    yield from nothing_to_judge(facts, "the compute mode", lambda gpu: gpu.compute_mode, "compute_mode")
