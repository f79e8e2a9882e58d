"""Something of the probe had to be ended or removed by force, or may be left

## What it finds
Ranks that did not end by themselves and were killed, and files of theirs in shared memory that were removed after them.
After a rank that died, files that came meanwhile are named, too, of which nothing shows whose they are: another job's,
in another container, may look like that, so they stay.

## Why it matters
What was certainly the probe's own is gone. But a rank that does not end holds a GPU in a job, too, and the next job
finds its memory in use; a process that cannot be killed hangs in the driver, and what stays in shared memory takes room
until the node starts again.

## What to type
`nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv` on the node: nothing of the probe may be there.
`ls -l /dev/shm/nccl-*` shows the files; one that came during the probe and that no job uses can be removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.probe import ProbeFacts

_MOST = 9


@node_check("NC705", Severity.WARNING, ProbeFacts)
def probe_left_behind(node: NodeView) -> Iterator[Problem]:
    left = tuple(dict.fromkeys(what for result in node[ProbeFacts].results for what in result.left))
    if left:
        words = f"{len(left)} things had to be ended or removed, or may be left, after the probe"
        message = left[0] if len(left) == 1 else words
        yield Problem(message, 'ps -fu "$USER"; ls -l /dev/shm', left[:_MOST])
