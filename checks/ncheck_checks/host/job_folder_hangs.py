"""A folder of the job is on a file system that hangs

## What it finds
Nodes where the file system of the home folder, of --data, of the current folder, or of a folder that a variable such as
HF_HOME, TORCH_HOME or TRITON_CACHE_DIR names, does not answer within 5 seconds, or fails with an error such as "Stale
file handle" or "Transport endpoint is not connected". A healthy file system needs milliseconds.

## Why it matters
A process that touches a hung mount sleeps in the kernel (state D), and no signal ends it. One rank of the job hangs
there, without a message, and all others wait for it in their first collective. `ls` and `df` hang in the same way.

## What to type
`timeout 5 stat -f PATH` repeats the look. `sudo dmesg | grep -iE 'not responding|lustre'` shows
since when. If the server is well, mount it again: `sudo umount -f -l POINT; sudo mount POINT`. Processes that hang
there go on when the server answers, or stay until the node restarts.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.storage import JobFolder, StorageFacts, dead


@node_check("NC640", Severity.ERROR, StorageFacts, blocks_plan=True)
def job_folder_hangs(node: NodeView) -> Iterator[Problem]:
    sick: dict[tuple[str, str], list[JobFolder]] = {}
    for folder in node[StorageFacts].folders:
        if why := dead(folder):
            sick.setdefault((folder.on.label if folder.on else "", why), []).append(folder)
    for (mount, why), folders in sick.items():
        labels = ", ".join(folder.label for folder in folders)
        message = f"{labels}: {mount} {why}" if mount else f"{labels}: {why}"
        yield Problem(message, f"timeout 5 stat -f {quote(folders[0].path)}", look=True)
