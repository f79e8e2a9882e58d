"""The file system for temporary files is full

## What it finds
Nodes where /tmp, or the folder that TMPDIR or Open MPI's orte_tmpdir_base names, has less than 16 MiB or no more files
(inodes) free.

## Why it matters
mpirun's daemon keeps a session folder there with the ranks' shared data. Open MPI 4.1 hangs at the start of eight ranks
with 8 MiB free, and starts them with 12. Compilers (Triton, torch.compile), data loaders and the shell's here-documents
write there too: "No space left on device".

## What to type
`df -h /tmp; df -i /tmp` shows how full it is, `sudo du -xh /tmp | sort -h | tail` what is large. Files of finished jobs
may be removed; or name a larger folder on every node with `export TMPDIR=DIR`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.folders import FolderFacts

MIB = 2**20
LEAST = 16 * MIB  # twice what Open MPI 4.1.4 needs for eight ranks


@node_check("NC606", Severity.ERROR, FolderFacts, blocks_plan=True)
def temporary_folder_full(node: NodeView) -> Iterator[Problem | Inconclusive]:
    for folder in node[FolderFacts].temporary:
        if isinstance(folder, Unread):
            yield Inconclusive(folder.reason)
        elif not folder.writable:
            continue  # temporary-folder-unusable reports it
        elif folder.free < LEAST:
            fix = f"sudo du -xh {quote(folder.path)} | sort -h | tail"
            yield Problem(f"{folder.label} is full: {folder.free / MIB:.1f} MiB free", fix, look=True)
        elif folder.files_free == 0:
            yield Problem(f"{folder.label} is full: no inode is free", f"df -i {quote(folder.path)}", look=True)
