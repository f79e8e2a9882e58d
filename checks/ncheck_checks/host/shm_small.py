"""Shared memory is too small for the GPUs of a node

## What it finds
Nodes with two GPUs and more whose /dev/shm holds less than 1 GiB, as in a container of Docker's that was given no other
size (64 MiB), and those where less than a quarter of that is free.

## Why it matters
Where GPUs have no direct way to each other, NCCL passes their data through files in /dev/shm, and stops with "failed to
extend /dev/shm/nccl-..., No space left on device". torch's data loaders hand their batches over there, too: they die
of "Bus error".

## What to type
In a container, start it with `docker run --shm-size=1g` and more, or `--ipc=host`; in Kubernetes, mount an emptyDir of
medium Memory at /dev/shm. On the machine itself, `sudo mount -o remount,size=50% /dev/shm`. Where it is full,
`ls -lhS /dev/shm` shows with what: files of jobs that ended may be removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.facts.limits import LimitsFacts

MIB = 2**20


ENOUGH, LEAST_FREE = 1024 * MIB, 256 * MIB  # what NCCL's own guide starts containers with; a quarter of it


@node_check("NC604", Severity.WARNING, LimitsFacts, GpuFacts, also=(InterpreterFacts,))
def shm_small(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    shm, python = node[LimitsFacts].shm, node.maybe(InterpreterFacts)
    if len(node[GpuFacts].gpus) < 2:  # noqa: PLR2004  one has none to share memory with
        yield NotApplicable("fewer than two GPUs")
    elif isinstance(shm, Unread):
        yield Inconclusive(shm.reason)
    elif shm.total < ENOUGH:
        contained = isinstance(python, InterpreterFacts) and python.container
        fix = "docker run --shm-size=1g" if contained else "sudo mount -o remount,size=50% /dev/shm"
        yield Problem(f"shared memory, /dev/shm, has {shm.total // MIB} MiB; a job of several GPUs may need 1 GiB", fix)
    elif shm.free < LEAST_FREE:
        yield Problem(f"of {shm.total // MIB} MiB of shared memory {shm.free // MIB} are free", "ls -lhS /dev/shm")
