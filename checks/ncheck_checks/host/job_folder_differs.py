"""A shared folder of the job is mounted in another manner on some nodes

## What it finds
--data, or the folder in which ncheck was started, is on network file systems, but on some nodes from another server or
export, or with other options: vers, hard or soft, noac, sync, nolock, local_lock, lookupcache, proto, sec, nconnect,
flock. Servers with several addresses are recognised: the folder is the same if its inode is. rsize, wsize, timeouts and
addresses are not compared. shared-mount-read-only reports ro and rw.

## Why it matters
From another export a rank reads other data, with no error. With `soft`, a server that is slow for a moment ends a read
with "Input/output error" on that node alone; with another version or `noac` it is far slower, and all ranks wait.

## What to type
`findmnt -T PATH` on a named node and on another one, then make /etc/fstab (or the automounter's map) the same and mount
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.storage import FileSystem, JobFolder, StorageFacts, shared_folders
from ncheck.parity import split

READ_OR_WRITE = {"ro", "rw"}


@cluster_check("NC644", Severity.WARNING, StorageFacts)
def job_folder_differs(cluster: Cluster) -> Iterator[Problem]:
    for (path, named_by), folders in shared_folders(cluster.facts(StorageFacts)).items():
        shared = {node: one for node, one in folders.items() if one.seen and one.exists and one.on and one.on.network}
        sources = split({node: _source(one, shared) for node, one in shared.items()})
        options = split({node: _options(one.on) for node, one in shared.items() if one.on})
        for verb, differ in (("comes from", sources), ("is mounted with", options)):
            if differ:
                message = f"{path} ({named_by}) {verb} {differ.summary()}"
                yield Problem(message, f"findmnt -T {quote(path)}", nodes=differ.odd, look=True)


def _source(folder: JobFolder, all_nodes: Mapping[str, JobFolder]) -> str:
    """Return where a folder comes from, by the words of the first node that sees the same folder."""
    return next(one.on.source for one in all_nodes.values() if one.on and _same(folder, one))


def _same(one: JobFolder, other: JobFolder) -> bool:
    """Return whether two nodes see the same folder, if by different addresses of its server."""
    if one.on is None or other.on is None:
        return False
    exports = [folder.on.source.partition(":/")[2] for folder in (one, other) if folder.on]
    unchanged = one.changed == other.changed or exports[0] == exports[1]
    return one.on.source == other.on.source or (one.inode == other.inode and unchanged)


def _options(on: FileSystem) -> str:
    return ",".join(option for option in on.options if option not in READ_OR_WRITE) or "no special options"
