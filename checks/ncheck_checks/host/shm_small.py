"""Shared memory is small or full

## What it finds
Nodes with two or more GPUs whose /dev/shm is smaller than 1 GiB, as in a Docker container with the default size
(64 MiB), or has less than a quarter of 1 GiB free; and nodes with fewer GPUs where it has less than 32 MiB free. With
less than 32 MiB free beside several GPUs it is an error; not inside a job, which may have filled it itself.

## Why it matters
If GPUs have no direct path to each other, NCCL passes their data through files in /dev/shm, and stops with "failed to
extend /dev/shm/nccl-..., No space left on device". torch's data loaders also pass their batches there: they die with
"Bus error".

## What to type
For a container, start it again with more, on its machine and with your other options:
`docker run -it --gpus all --network=host --shm-size=1g IMAGE`, or `--ipc=host` in place of a size. In Kubernetes, mount
an emptyDir of medium Memory at /dev/shm. On the machine itself, `sudo mount -o remount,size=50% /dev/shm`. If it is
full, `ls -lhS /dev/shm` shows the largest files; files of finished jobs may be removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.limits import LimitsFacts
from ncheck.facts.run import JobFacts

MIB = 2**20
ENOUGH, LEAST_FREE = 1024 * MIB, 256 * MIB  # the size in NCCL's guide for containers; a quarter of it

# Eight ranks of NCCL 2.20 without a direct path between GPUs use more, and so does one batch of a data loader: 64
# images of 3 x 224 x 224 floats have 37 MiB.
FULL = 32 * MIB


@node_check("NC604", Severity.ERROR, LimitsFacts, also=(GpuFacts, InterpreterFacts, JobFacts), next_step="fix-first")
def shm_small(node: NodeView) -> Iterator[Problem | Inconclusive]:
    shm, gpus, python = node[LimitsFacts].shm, node.maybe(GpuFacts), node.maybe(InterpreterFacts)
    if isinstance(shm, Unread):
        yield Inconclusive(shm.reason)
        return
    if isinstance(gpus, Unread):
        yield Inconclusive(gpus.reason)
        return
    several = isinstance(gpus, GpuFacts) and len(gpus.gpus) > 1
    job = node.maybe(JobFacts)
    running = isinstance(job, JobFacts) and job.running
    stops = several and shm.free < FULL and not running
    if not stops and ((several and shm.total < ENOUGH) or shm.total < FULL):
        contained = isinstance(python, InterpreterFacts) and python.container != ""
        start = "start the container again with --shm-size=1g or --ipc=host"
        fix = start if contained else "sudo mount -o remount,size=50% /dev/shm"
        need = "a job on several GPUs may need 1 GiB" if several else "one batch of a data loader may need more"
        yield Problem(
            f"shared memory (/dev/shm) has {shm.total // MIB} MiB; {need}", fix, do=contained,
            summary="shared memory is too small", severity=Severity.WARNING,
        )  # fmt: skip
    elif shm.free < (LEAST_FREE if several else FULL):
        yield Problem(
            f"shared memory (/dev/shm) has {shm.free // MIB} MiB free of {shm.total // MIB} MiB",
            "ls -lhS /dev/shm",
            look=True,
            summary="shared memory is full",
            severity=None if stops else Severity.WARNING,
        )
