"""A network file system of a node hangs

## What it finds
Nodes where a network file system (NFS, Lustre, GPFS, BeeGFS, Ceph, FUSE and others) that is mounted does not answer
within 5 seconds, or fails with an error such as "Stale file handle". job-folder-hangs reports those of the job's own
folders. Up to 32 mounts of a node are looked at, one of each server first; nothing is mounted by the look.

## Why it matters
Whatever touches the mount hangs in the kernel (state D), where no signal ends it: `df`, `ls`, a shell that has it on
its PATH, the prolog of a scheduler, a rank that loads a library from there.

## What to type
`timeout 5 stat -f POINT` repeats the look. A mount that nobody needs can be taken away with
`sudo umount -f -l POINT`; otherwise see whether its server is up, and mount it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.storage import StorageFacts, dead


@node_check("NC641", Severity.WARNING, StorageFacts)
def network_mount_hangs(node: NodeView) -> Iterator[Problem]:
    facts = node[StorageFacts]
    of_the_job = {folder.on.point for folder in facts.folders if folder.on and dead(folder)}
    for mount in facts.mounts:
        if (why := dead(mount)) and mount.on.point not in of_the_job:
            yield Problem(f"{mount.on.label} {why}", f"timeout 5 stat -f {quote(mount.on.point)}", look=True)
