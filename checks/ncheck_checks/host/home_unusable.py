"""The home folder is missing, or the job's user cannot write to it

## What it finds
Nodes where the home folder of the job's user does not exist (an error: a network file system that is not mounted, or an
account that was made without one), is on a read-only file system, or belongs to someone else (a warning). Inside a job,
which has been started without it, a missing one is a warning, too.

## Why it matters
mpirun starts each rank in the folder where the launch line is typed, else in the home folder. Where both are missing it
ends with "could not change to the specified working directory". ssh finds no keys and no known hosts there. CUDA,
Triton and torch keep what they compile in ~/.nv, ~/.triton and ~/.cache: without it, each start compiles again or
fails.

## What to type
`getent passwd $(id -un)` on the node shows where the home folder should be, and `findmnt` what is mounted. If it lies
on a network file system, `sudo mount -a`; otherwise `sudo mkhomedir_helper NAME` makes it. `ls -ld ~; findmnt -T ~`
shows its owner and file system; often the user has another id there (`id`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.folders import FolderFacts
from ncheck.facts.run import JobFacts


@node_check("NC611", Severity.ERROR, FolderFacts, also=(JobFacts,), blocks_plan=True)
def home_unusable(node: NodeView) -> Iterator[Problem | Inconclusive]:
    home, job = node[FolderFacts].home, node.maybe(JobFacts)
    running = isinstance(job, JobFacts) and job.running
    if isinstance(home, Unread):
        yield Inconclusive(home.reason)
    elif not home.exists:
        yield Problem(
            f"the home folder {home.path} does not exist", "getent passwd $(id -un)", look=True,
            severity=Severity.WARNING if running else None,
        )  # fmt: skip
    elif not home.writable:
        state = "is on a read-only file system" if home.read_only else "cannot be written to by the job's user"
        message, look = f"the home folder {home.path} {state}", "ls -ld ~; findmnt -T ~; id"
        yield Problem(message, look, look=True, severity=Severity.WARNING)
