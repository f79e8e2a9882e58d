"""The process of a rank ended before the job began

## What it finds
Ranks that came to the meeting of `ncheck.preflight()` and whose process ended before the verdict: it was killed, or it
crashed.

## Why it matters
All other ranks wait for it as soon as they communicate. Launchers that watch their processes end the job; with bare
RANK and WORLD_SIZE variables, nobody does.

## What to type
The rank's own output, and `sudo dmesg -T` on the named node, say why: "Out of memory: Killed process" is the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.ranks import RanksFacts, ranks_text


@node_check("NC803", Severity.ERROR, RanksFacts, blocks_plan=True)
def rank_ended(node: NodeView) -> Iterator[Problem]:
    if ended := node[RanksFacts].ended:
        pids = ", ".join(f"pid {pid}" for pid in ended.values())
        yield Problem(
            f"{ranks_text(ended)} ended before the job began ({pids})", "sudo dmesg -T", look=True,
            summary="ranks have ended",
        )  # fmt: skip
