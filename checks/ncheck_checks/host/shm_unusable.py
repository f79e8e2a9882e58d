"""The job cannot use shared memory

## What it finds
Nodes where the job's user cannot write to /dev/shm: it does not exist, is mounted read-only, or its permissions forbid
it. shm-small reports one that is too small or full.

## Why it matters
NCCL passes data between GPUs of a node through files there, Open MPI its messages between ranks; Python's
multiprocessing, and so torch's data loaders, keep their locks there. They stop with "Permission denied", "Read-only
file system" or "Function not implemented".

## What to type
`sudo chmod 1777 /dev/shm`, `sudo mount -o remount,rw /dev/shm`, or, where it is missing,
`sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.folders import FolderFacts


@node_check("NC610", Severity.ERROR, FolderFacts, blocks_plan=True)
def shm_unusable(node: NodeView) -> Iterator[Problem | Inconclusive]:
    shm = node[FolderFacts].shm
    if isinstance(shm, Unread):
        yield Inconclusive(shm.reason)
    elif not shm.exists:
        fix = "sudo mkdir -p /dev/shm && sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm"
        yield Problem("there is no shared memory (/dev/shm)", fix)
    elif shm.read_only:
        yield Problem("shared memory (/dev/shm) is mounted read-only", "sudo mount -o remount,rw /dev/shm")
    elif not shm.writable:
        yield Problem("the job's user cannot write to shared memory (/dev/shm)", "sudo chmod 1777 /dev/shm")
