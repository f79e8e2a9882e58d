"""The folder for temporary files does not exist

## What it finds
Nodes where TMPDIR (or TEMP, TMP, Open MPI's orte_tmpdir_base) names a folder that does not exist, and that the job's
user may make, or where it or /tmp is a symbolic link to such a folder: perhaps a file system is not mounted there.
temporary-folder-unusable reports one that the user cannot make.

## Why it matters
Open MPI makes the folder itself. Python quietly uses /tmp instead, which may be small or shared; most other programs
that write to $TMPDIR fail.

## What to type
For a link, mount the file system of its target, or else make that folder. `mkdir -p DIR` on the named nodes, or unset
the variable in the start-up file that sets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.folders import FolderFacts


@node_check("NC608", Severity.WARNING, FolderFacts)
def temporary_folder_missing(node: NodeView) -> Iterator[Problem | Inconclusive]:
    for folder in node[FolderFacts].temporary:
        if isinstance(folder, Unread):
            yield Inconclusive(folder.reason)
        elif not folder.exists and folder.writable:
            mode = "-m 1777 " if folder.target and not folder.named_by else ""
            yield Problem(folder.missing, f"mkdir -p {mode}{quote(folder.target or folder.path)}")
