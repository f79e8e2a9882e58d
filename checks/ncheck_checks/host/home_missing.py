"""The home folder does not exist

## What it finds
Nodes where the home folder of the job's user does not exist: a network file system that is not mounted, or an account
that was made without one.

## Why it matters
mpirun starts each rank in the folder where the launch line is typed, else in the home folder. Where both are missing it
ends with "could not change to the specified working directory"; a folder below the home is missing with it. ssh finds
no keys and no known hosts there; Python, CUDA and torch find no place for what they install and compile.

## What to type
`getent passwd $(id -un)` on the node shows where the home folder should be, and `findmnt` what is mounted. If it lies
on a network file system, `sudo mount -a`; otherwise `sudo mkhomedir_helper NAME` makes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.folders import FolderFacts


@node_check("NC630", Severity.ERROR, FolderFacts, blocks_plan=True)
def home_missing(node: NodeView) -> Iterator[Problem | Inconclusive]:
    home = node[FolderFacts].home
    if isinstance(home, Unread):
        yield Inconclusive(home.reason)
    elif not home.exists:
        yield Problem(f"the home folder {home.path} does not exist", "getent passwd $(id -un)", look=True)
