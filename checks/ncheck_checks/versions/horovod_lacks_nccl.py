"""Horovod was built without NCCL on a node with GPUs

## What it finds
Nodes with NVIDIA GPUs whose `horovodrun --check-build` does not mark NCCL under "Available Tensor Operations". Nodes
without GPUs are skipped: Horovod needs no NCCL there.

## Why it matters
Horovod prints no warning and sends every gradient through the CPU with MPI or Gloo. The job runs many times slower than
its GPUs and its fabric allow, and NCCL's settings have no effect.

## What to type
`HOROVOD_GPU_OPERATIONS=NCCL python3 -m pip install --no-cache-dir --force-reinstall horovod` in the job's
environment, then `horovodrun --check-build`: NCCL must be marked [X].
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import HorovodFacts


@node_check("NC205", Severity.ERROR, HorovodFacts, GpuFacts)
def horovod_lacks_nccl(node: NodeView) -> Iterator[Problem]:
    horovod = node[HorovodFacts]
    if "NCCL" not in horovod.operations:
        yield Problem(
            message=f"Horovod {horovod.version} was built without NCCL, on a node with {len(node[GpuFacts].gpus)} GPUs",
            fix="HOROVOD_GPU_OPERATIONS=NCCL python3 -m pip install --no-cache-dir --force-reinstall horovod",
            evidence=("tensor operations: " + (", ".join(sorted(horovod.operations)) or "none"),),
            summary="Horovod lacks NCCL",
        )
