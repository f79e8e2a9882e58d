"""A folder of the job is shared on some nodes and local on others

## What it finds
--data, or the folder in which ncheck was started, is on a network file system on some nodes and on a disk of the node
itself on others. A node that serves the folder to the others, and so has it on its disk, is not reported: the folder's
inode and time of change are the same there.

## Why it matters
A mount that is missing leaves the empty folder beneath it. The rank there finds no data, or old data, and its
checkpoints are on a disk that no other node sees: "No such file or directory", or results that differ for no visible
reason.

## What to type
`findmnt -T PATH` on a named node and on another one; `sudo mount -a` mounts what /etc/fstab lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check, fold
from ncheck.facts.storage import JobFolder, StorageFacts, shared_folders
from ncheck.parity import nodes_by_value, split

MOST_SHOWN = 8  # mounts in the evidence


@cluster_check("NC643", Severity.ERROR, StorageFacts, blocks_plan=True)
def job_folder_not_shared(cluster: Cluster) -> Iterator[Problem]:
    for (path, named_by), folders in shared_folders(cluster.facts(StorageFacts)).items():
        on = {node: one.on for node, one in folders.items() if one.seen and one.exists and one.on}
        seen = {_identity(folders[node]) for node, mount in on.items() if mount.network}
        shared = {node: mount.network or _identity(folders[node]) in seen for node, mount in on.items()}
        differ = split({node: "a shared file system" if own else "a local disk" for node, own in shared.items()})
        if differ:
            mounts = nodes_by_value({node: one.label for node, one in on.items()})
            evidence = tuple(f"{fold(nodes)}: {label}" for label, nodes in list(mounts.items())[:MOST_SHOWN])
            message = f"{path} ({named_by}) is on {differ.summary()}"
            yield Problem(message, f"findmnt -T {quote(path)}", evidence, differ.odd, look=True)


def _identity(folder: JobFolder) -> tuple[int, int]:
    """Return what is the same on the server and on all of its clients."""
    return folder.inode, folder.changed
