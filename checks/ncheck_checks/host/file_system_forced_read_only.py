"""The kernel made a file system read-only

## What it finds
File systems of disks (ext4, xfs, btrfs, f2fs) that were mounted for writing and are read-only all the same: the kernel
does that by itself after an error, as `errors=remount-ro` asks. No root is needed to see it. Of the root file system of
several nodes, root-read-only reports it.

## Why it matters
The disk, its cable or its controller failed. Every write to it ends with "Read-only file system": logs, local
checkpoints, caches, container images. What it still reads may be damaged.

## What to type
`sudo dmesg | grep -iE 'remount|I/O error'` on the node shows the first error. Take the node out of service and check
the disk before `sudo mount -o remount,rw POINT`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.storage import StorageFacts


@cluster_check("NC647", Severity.ERROR, StorageFacts, alone=True, hardware=True)
def file_system_forced_read_only(cluster: Cluster) -> Iterator[Problem]:
    for node, facts in cluster.facts(StorageFacts).items():
        first = {one.source: one for one in reversed(facts.forced) if one.point != "/" or len(cluster) == 1}
        for one in reversed(first.values()):
            message = f"{one.label} is read-only, although it was mounted for writing"
            yield Problem(message, "sudo dmesg | grep -iE 'remount|I/O error'", nodes=(node,), look=True)
