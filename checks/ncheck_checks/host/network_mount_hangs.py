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
from ncheck.facts.storage import FileSystem, StorageFacts, dead


@node_check("NC641", Severity.WARNING, StorageFacts)
def network_mount_hangs(node: NodeView) -> Iterator[Problem]:
    facts = node[StorageFacts]
    of_the_job = {folder.on.point for folder in facts.folders if folder.on and dead(folder)}
    sick: dict[tuple[str, str], list[FileSystem]] = {}
    for mount in facts.mounts:
        if (why := dead(mount)) and mount.on.point not in of_the_job:
            sick.setdefault((mount.on.source.partition(":/")[0], why), []).append(mount.on)
    for (_, why), mounts in sick.items():
        others = f", and {len(mounts) - 1} more from there" if len(mounts) > 1 else ""
        evidence = tuple(mount.label for mount in mounts[1:])
        yield Problem(
            f"{mounts[0].label} {why}{others}", f"timeout 5 stat -f {quote(mounts[0].point)}", evidence, look=True
        )
