"""Programs cannot be run from the folder for temporary files

## What it finds
Nodes where the file system of the folder for temporary files is mounted noexec: of the one that TMPDIR (or TEMP, TMP)
names, else of /tmp.

## Why it matters
torch.compile, Triton, and extensions for CUDA that are built as a job starts load the libraries that they have built
from there: "failed to map segment from shared object". Installers that unpack a program there fail too.

## What to type
The line of the finding lasts until the next start; take noexec out of /etc/fstab, too. Where noexec is wanted, set
TMPDIR to a folder on another local file system in ~/.bashrc, on every node: `export TMPDIR=/local/$USER`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.folders import Folder, FolderFacts

USED = ("TMPDIR", "TEMP", "TMP")
USUAL = "/tmp"  # noqa: S108  only compared


@node_check("NC632", Severity.WARNING, FolderFacts)
def temporary_folder_noexec(node: NodeView) -> Iterator[Problem]:
    folders = [folder for folder in node[FolderFacts].temporary if isinstance(folder, Folder) and folder.exists]
    named = [folder for folder in folders if folder.named_by in USED]
    for folder in named or [folder for folder in folders if folder.path == USUAL]:
        if folder.no_exec:
            harm = "torch.compile, Triton and CUDA extensions cannot load what they build"
            yield Problem(
                f"{folder.label} is mounted noexec: {harm}",
                f'sudo mount -o remount,exec "$(findmnt -no TARGET -T {quote(folder.path)})"',
                summary="no program runs from the folder for temporary files",
            )
