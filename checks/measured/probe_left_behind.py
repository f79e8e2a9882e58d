"""Something of the probe had to be ended or removed by force

## What it finds
Ranks that did not end by themselves and were killed, and files of theirs in shared memory that were removed after them.

## Why it matters
The probe leaves nothing behind: it is all gone. But a rank that does not end holds a GPU in a job, too, and the next
job finds its memory in use; a process that cannot be killed hangs in the driver.

## What to type
`nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv` on the node: nothing of the probe may be there.
"""

from __future__ import annotations

from collections.abc import Iterator

from doctor import NodeView, Problem, Severity, node_check
from doctor.model.facts import ProbeFacts

_MOST = 9


@node_check("NC705", Severity.WARNING, ProbeFacts)
def probe_left_behind(node: NodeView) -> Iterator[Problem]:
    left = tuple(dict.fromkeys(what for turn in node[ProbeFacts].turns for what in turn.left))
    if left:
        message = left[0] if len(left) == 1 else f"{len(left)} things had to be ended or removed after the probe"
        yield Problem(message, 'ps -fu "$USER"; ls -l /dev/shm', left[:_MOST])
