"""The file system of a folder of the job is almost full

## What it finds
File systems with less than 1 GiB and less than 10 % free, or with fewer than 1000 files (inodes) free, where the job's
user may write: in the home folder, in the folder in which ncheck was started if it is shared, and in folders that
variables such as HF_HOME or TORCH_HOME name. A limit of the user himself (quota) is not seen. temporary-folder-full
reports /tmp.

## Why it matters
A checkpoint of half a billion parameters in 16 bits is 1 GB, and the caches of compilers (Triton, torch.compile) hold
several files for each kernel: a job that starts here fails later with "No space left on device", often while it writes
a checkpoint. A share alone says little: 1 % of 100 TB is enough for a long time, and a small disk may be empty.

## What to type
`df -h PATH; df -i PATH` shows how full it is, `du -xh PATH | sort -h | tail` what is large, and `quota -s` your own
limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.storage import DATA, JobFolder, StorageFacts
from ncheck.text import size

LEAST_BYTES, LEAST_SHARE, LEAST_FILES = 2**30, 0.1, 1000


@cluster_check("NC646", Severity.WARNING, StorageFacts, alone=True)
def job_folder_full(cluster: Cluster) -> Iterator[Problem]:
    full: dict[tuple[str, str], dict[str, JobFolder]] = {}
    for node, facts in cluster.facts(StorageFacts).items():
        for folder in facts.folders:
            if folder.named_by != DATA and folder.seen and folder.writable and _left(folder):
                full.setdefault((folder.path, folder.on.source if folder.on else ""), {})[node] = folder
    for (path, _), nodes in full.items():
        least = min(nodes.values(), key=lambda folder: folder.free)
        fix = f"df -h {quote(path)}; df -i {quote(path)}"
        yield Problem(f"{least.label}: {_left(least)}", fix, nodes=tuple(nodes), look=True)


def _left(folder: JobFolder) -> str:
    """Return what is left of space or files where that is little."""
    if folder.free < min(LEAST_BYTES, LEAST_SHARE * folder.size):
        return f"{size(folder.free)} free"
    few = folder.files_free is not None and folder.files_free < LEAST_FILES
    return f"{folder.files_free} files (inodes) free" if few else ""
