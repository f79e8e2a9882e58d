"""The job's user cannot write to the home folder

## What it finds
Nodes where the home folder of the job's user is on a read-only file system, or belongs to someone else. home-missing
reports one that does not exist.

## Why it matters
CUDA, Triton and torch keep what they compile in ~/.nv, ~/.triton and ~/.cache: without it, each start compiles again or
fails.

## What to type
`ls -ld ~; findmnt -T ~` on the node shows its owner and file system. Often the user has another id there (`id`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.folders import FolderFacts


@node_check("NC611", Severity.WARNING, FolderFacts)
def home_unusable(node: NodeView) -> Iterator[Problem | Inconclusive]:
    home = node[FolderFacts].home
    if isinstance(home, Unread):
        yield Inconclusive(home.reason)
    elif home.exists and not home.writable:  # home-missing reports one that does not exist
        state = "is on a read-only file system" if home.read_only else "cannot be written to by the job's user"
        yield Problem(f"the home folder {home.path} {state}", "ls -ld ~; findmnt -T ~; id", look=True)
