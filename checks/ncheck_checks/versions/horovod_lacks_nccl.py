"""Horovod was built without NCCL on a node with GPUs

## What it finds
Nodes with NVIDIA GPUs whose `horovodrun --check-build` does not mark NCCL under "Available Tensor Operations". Nodes
without GPUs are skipped: Horovod needs no NCCL there.

## Why it matters
Horovod prints no warning and sends every gradient through the CPU with MPI or Gloo. The job runs many times slower than
its GPUs and its fabric allow, and NCCL's settings have no effect.

## What to type
`HOROVOD_GPU_OPERATIONS=NCCL python3 -m pip install --no-cache-dir --force-reinstall horovod==VERSION` in the job's
environment, with the version that most nodes have, then `horovodrun --check-build`: NCCL must be marked [X].
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check, nodes_by_value
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.horovod import WITHOUT_NCCL, HorovodFacts


@cluster_check("NC205", Severity.ERROR, HorovodFacts, GpuFacts, alone=True, explains=WITHOUT_NCCL)
def horovod_lacks_nccl(cluster: Cluster) -> Iterator[Problem]:
    builds, gpus = cluster.facts(HorovodFacts), cluster.facts(GpuFacts)
    with_version = nodes_by_value({node: horovod.version for node, horovod in builds.items()})
    most = max(with_version.values(), key=len)[0]
    for node, horovod in builds.items():
        if "NCCL" not in horovod.operations:
            yield Problem(
                message=f"Horovod {horovod.version} was built without NCCL, on a node with {len(gpus[node].gpus)} GPUs",
                fix=builds[most].to_install(with_nccl=True),
                evidence=("tensor operations: " + (", ".join(sorted(horovod.operations)) or "none"),),
                nodes=(node,), summary="Horovod lacks NCCL",
            )  # fmt: skip
