"""Processes or files of the probe had to be removed by force, or may be left

## What it finds
Ranks that did not end by themselves and were killed, and their files in shared memory, which were removed. If a rank
died, it also lists new files whose owner is unknown: they may belong to a job in another container, so they stay.

## Why it matters
Everything that certainly belonged to the probe is gone. But a rank that does not end would also keep a GPU in a job,
and the next job finds its memory in use. A process that cannot be killed hangs in the driver, and files in shared
memory take space until the node restarts.

## What to type
`nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv` on the node must show no process of the probe.
`ls -l /dev/shm/nccl-*` shows the files. You may remove one that is as new as the probe and that no job uses.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.probe.facts import ProbeFacts

_MOST = 9


@node_check("NC705", Severity.WARNING, ProbeFacts)
def probe_left_behind(node: NodeView) -> Iterator[Problem]:
    left = tuple(dict.fromkeys(what for result in node[ProbeFacts].results for what in result.left))
    if left:
        words = f"after the probe {len(left)} processes or files had to be removed, or may be left"
        message = left[0] if len(left) == 1 else words
        yield Problem(message, 'ps -fu "$USER"; ls -l /dev/shm', left[:_MOST], look=True)
