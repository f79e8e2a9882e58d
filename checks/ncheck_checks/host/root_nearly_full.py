"""The root file system is almost full

## What it finds
Nodes whose root file system has less than 1 GiB and less than 10 % free. If the home folder lies on it,
job-folder-full reports it; temporary-folder-full reports /tmp. A root file system that is read-only, as in some
containers, has nothing to fill.

## Why it matters
/var and /etc usually lie on it. Logs, packages and the state of services can no longer be written: drivers are half
updated, logins and slurmd fail at their next start, and what a crash leaves behind is lost.

## What to type
`df -h /; df -i /` shows how full it is, `sudo du -xh / | sort -h | tail -n 20` what is large.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.folders import Folder, FolderFacts
from ncheck.text import size

LEAST_BYTES, LEAST_SHARE = 2**30, 0.1


@node_check("NC654", Severity.WARNING, FolderFacts)
def root_nearly_full(node: NodeView) -> Iterator[Problem | Inconclusive]:
    root, home = node[FolderFacts].root, node[FolderFacts].home
    if isinstance(root, Unread):
        yield Inconclusive(root.reason)
    elif _little_left(root) and not _same(root, home):
        message = f"the root file system has {size(root.free)} of {size(root.size or 0)} free"
        yield Problem(message, "df -h /; df -i /", look=True, summary="the root file system is almost full")


def _little_left(root: Folder) -> bool:
    return bool(root.size) and not root.read_only and root.free < min(LEAST_BYTES, LEAST_SHARE * (root.size or 0))


def _same(root: Folder, home: Folder | Unread) -> bool:
    """Tell whether the home folder lies on the root file system, as far as their numbers tell."""
    if isinstance(home, Unread):
        return False
    return (root.size, root.kind) == (home.size, home.kind) and abs(root.free - home.free) < LEAST_BYTES / 64
