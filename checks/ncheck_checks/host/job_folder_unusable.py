"""A folder of the job is missing or cannot be used

## What it finds
Nodes where --data does not exist or cannot be read by the job's user; nodes where --workdir cannot be read, or not be
written to although others can; and, without --workdir, nodes that lack the folder in which ncheck was started, or
cannot write to it, if it is on a network file system and more than half of the nodes have it. A --workdir that does not
exist is NC223.

## Why it matters
The rank on that node stops with "No such file or directory" or "Permission denied", and all others wait for it. mpirun
changes to the current folder on every node; where it does not exist, Open MPI starts the ranks in the home folder, and
python says "can't open file 'train.py'".

## What to type
`findmnt -T PATH` shows which file system the path is on; often one is not mounted: `sudo mount -a`. `ls -ld PATH; id`
shows owner and user. If root runs ncheck, and the NFS server treats root as nobody (root_squash), run it as the user of
the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.storage import DATA, WORKDIR, JobFolder, StorageFacts, dead, shared_folders
from ncheck.parity import nodes_by_value


@cluster_check("NC642", Severity.ERROR, StorageFacts, alone=True, blocks_plan=True)
def job_folder_unusable(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    facts = cluster.facts(StorageFacts)
    for (path, named_by), folders in shared_folders(facts).items():
        states = {node: _trouble(folder) for node, folder in folders.items()}
        if named_by != DATA and any(one.seen and one.exists and one.writable for one in folders.values()):
            locked = [node for node, one in folders.items() if one.seen and not states[node] and not one.writable]
            states |= dict.fromkeys(locked, "cannot be written to by the job's user")
        for trouble, nodes in nodes_by_value(states).items():
            squashed = tuple(node for node in nodes if _squashed(folders[node], as_root=facts[node].root))
            if trouble and squashed and named_by == DATA:
                yield Inconclusive(f"root cannot use {path} (root_squash?): run ncheck as the job's user", squashed)
            if trouble and (named := tuple(node for node in nodes if node not in squashed)):
                fix = f"findmnt -T {quote(path)}; ls -ld {quote(path)}; id"
                yield Problem(f"{path} ({named_by}) {trouble}", fix, nodes=named, look=True)


def _trouble(folder: JobFolder) -> str:
    """Return why a folder cannot be read; "" if it can, or if job-folder-hangs says why not."""
    if dead(folder):
        return ""
    if folder.error:
        return f"cannot be read: {folder.error}"
    if not folder.exists:
        return "" if folder.named_by == WORKDIR else "does not exist"
    return "" if folder.readable else "cannot be read by the job's user"


def _squashed(folder: JobFolder, *, as_root: bool) -> bool:
    """Return whether a server may have refused this user only because it is root."""
    return as_root and folder.on is not None and folder.on.network and (folder.exists or bool(folder.error))
