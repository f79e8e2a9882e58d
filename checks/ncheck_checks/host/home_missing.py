"""The home folder does not exist

## What it finds
Nodes where the home folder of the job's user does not exist: a network file system that is not mounted, or an account
that was made without one. Inside a job, which has been started without it, nothing is reported.

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

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.folders import FolderFacts
from ncheck.facts.run import JobFacts


@node_check("NC630", Severity.ERROR, FolderFacts, also=(JobFacts,), blocks_plan=True)
def home_missing(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    home, job = node[FolderFacts].home, node.maybe(JobFacts)
    if isinstance(job, JobFacts) and job.running:
        yield NotApplicable("the job has been started already")
    elif isinstance(home, Unread):
        yield Inconclusive(home.reason)
    elif not home.exists:
        yield Problem(f"the home folder {home.path} does not exist", "getent passwd $(id -un)", look=True)
