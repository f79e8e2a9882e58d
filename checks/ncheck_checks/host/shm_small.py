"""Shared memory is too small for the GPUs of a node

## What it finds
Nodes with two or more GPUs whose /dev/shm is smaller than 1 GiB, as in a Docker container with the default size
(64 MiB), and those where less than a quarter of 1 GiB is free.

## Why it matters
If GPUs have no direct path to each other, NCCL passes their data through files in /dev/shm, and stops with "failed to
extend /dev/shm/nccl-..., No space left on device". torch's data loaders also pass their batches there: they die with
"Bus error".

## What to type
For a container, start it with `docker run --shm-size=1g` or more, or `--ipc=host`; in Kubernetes, mount an emptyDir of
medium Memory at /dev/shm. On the machine itself, `sudo mount -o remount,size=50% /dev/shm`. If it is full,
`ls -lhS /dev/shm` shows the largest files; files of finished jobs may be removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.limits import LimitsFacts

MIB = 2**20


ENOUGH, LEAST_FREE = 1024 * MIB, 256 * MIB  # the size in NCCL's guide for containers; a quarter of it


@node_check("NC604", Severity.WARNING, LimitsFacts, GpuFacts, also=(InterpreterFacts,))
def shm_small(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    shm, python = node[LimitsFacts].shm, node.maybe(InterpreterFacts)
    if len(node[GpuFacts].gpus) < 2:  # noqa: PLR2004  a single GPU shares no memory
        yield NotApplicable("fewer than two GPUs")
    elif isinstance(shm, Unread):
        yield Inconclusive(shm.reason)
    elif shm.total < ENOUGH:
        contained = isinstance(python, InterpreterFacts) and python.container
        fix = "docker run --shm-size=1g" if contained else "sudo mount -o remount,size=50% /dev/shm"
        yield Problem(
            f"shared memory (/dev/shm) has {shm.total // MIB} MiB; a job on several GPUs may need 1 GiB",
            fix,
            summary="shared memory is too small",
        )
    elif shm.free < LEAST_FREE:
        yield Problem(
            f"shared memory (/dev/shm) has {shm.free // MIB} MiB free of {shm.total // MIB} MiB",
            "ls -lhS /dev/shm",
            look=True,
            summary="shared memory is full",
        )
