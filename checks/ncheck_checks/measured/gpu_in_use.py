"""Somebody uses a GPU already

## What it finds
GPUs with memory in use before the job has begun: more than 3 % of it and more than a gibibyte, which no driver keeps
for itself. What is measured there is too low. Beyond 10 % ncheck measures nothing on GPUs, unless --force says so.

## Why it matters
A rank that shares its GPU is slow or ends out of memory, and all others wait for it or end with it. Often it is a
process that outlived the job before, or another user's on a node that is not shared on purpose.

## What to type
`nvidia-smi` on the named nodes shows the processes. End what is yours: `kill PID`. To measure all the same:
`ncheck probe nodes.txt --force`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.topology.gpus import in_use, share_in_use


@node_check("NC730", Severity.WARNING, GpuFacts)
def gpu_in_use(node: NodeView) -> Iterator[Problem]:
    shares = {gpu.index: share_in_use(gpu) or 0.0 for gpu in in_use(node[GpuFacts])}
    if shares:
        told = ", ".join(f"{share:.0%} of GPU {index}" for index, share in shares.items())
        yield Problem(f"memory is in use before the job begins: {told}", "nvidia-smi")
