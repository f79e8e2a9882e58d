"""Shared memory is full

## What it finds
Nodes with two or more GPUs where /dev/shm has less than 32 MiB free. shm-small reports less severe shortages, and this
one inside a job, which may have filled it itself.

## Why it matters
NCCL stops while it connects the GPUs of the node: "failed to extend /dev/shm/nccl-..., No space left on device". Data
loaders of torch and ranks of Open MPI die with "Bus error".

## What to type
`ls -lhS /dev/shm` shows the largest files; files of finished jobs may be removed. If it is small, make it larger:
`docker run --shm-size=1g` or `--ipc=host` for a container, `sudo mount -o remount,size=50% /dev/shm` on the machine
itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.run import JobFacts

MIB = 2**20

LEAST_FREE = 32 * MIB  # eight ranks of NCCL 2.20 on one machine, without a direct path between GPUs, use more


@node_check("NC631", Severity.ERROR, LimitsFacts, GpuFacts, also=(JobFacts,))
def shm_full(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    shm, job = node[LimitsFacts].shm, node.maybe(JobFacts)
    if isinstance(job, JobFacts) and job.running:
        yield NotApplicable("the job may have filled it itself")
    elif len(node[GpuFacts].gpus) < 2:  # noqa: PLR2004  a single GPU shares no memory
        yield NotApplicable("fewer than two GPUs")
    elif isinstance(shm, Unread):
        yield Inconclusive(shm.reason)
    elif shm.free < LEAST_FREE:
        message = f"shared memory (/dev/shm) has {shm.free // MIB} MiB free of {shm.total // MIB} MiB"
        yield Problem(message, "ls -lhS /dev/shm", look=True, summary="shared memory is full")
