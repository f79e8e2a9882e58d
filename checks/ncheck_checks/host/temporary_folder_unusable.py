"""The job cannot write temporary files

## What it finds
Nodes where the job's user cannot write to /tmp, or to the folder that TMPDIR or Open MPI's orte_tmpdir_base names: its
file system is read-only, its permissions forbid it, or it does not exist and cannot be made. Also reported is a session
folder of Open MPI in it, such as /tmp/ompi.node01.1000, that has the user's number in its name and belongs to another.

## Why it matters
mpirun's daemon cannot make its session folder and ends ("orte_session_dir failed", "A call to mkdir was unable to
create the desired directory"); mpirun then waits or stops. Python, compilers and data loaders fail as well.

## What to type
`findmnt -T DIR` shows a file system that is mounted read-only; after errors of the disk the kernel does that by itself,
and `sudo dmesg | grep -i remount` has the reason. /tmp must have the mode of `sudo chmod 1777 /tmp`. A folder of TMPDIR
must exist on every node: `mkdir -p DIR`, or unset TMPDIR in the start-up file that sets it. A session folder of another
user is a leftover of a job that ran with other user ids: `sudo rm -r DIR`, once no job of that user runs there.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.folders import Folder, FolderFacts

USUAL = "/tmp"  # noqa: S108  only compared


@node_check("NC607", Severity.ERROR, FolderFacts, blocks_plan=True)
def temporary_folder_unusable(node: NodeView) -> Iterator[Problem | Inconclusive]:
    for folder in node[FolderFacts].temporary:
        if isinstance(folder, Unread):
            yield Inconclusive(folder.reason)
        elif not folder.writable:
            yield _problem(folder)


def _problem(folder: Folder) -> Problem:
    path = quote(folder.path)
    if folder.read_only:
        return Problem(f"{folder.label} is on a read-only file system", f"findmnt -T {path}", look=True)
    if not folder.exists:
        fix = f"sudo mkdir -p -m 1777 {quote(folder.target or folder.path)}"
        return Problem(f"{folder.missing}, and the job's user cannot make it", fix)
    if not folder.named_by and folder.path != USUAL:
        message = f"the job's user cannot write to {folder.path}, where Open MPI keeps the user's session"
        return Problem(message, f"ls -ld {path}", look=True)
    fix = f"sudo chmod 1777 {path}" if not folder.named_by else f"ls -ld {path}"
    return Problem(f"the job's user cannot write to {folder.label}", fix, look=bool(folder.named_by))
