"""Ranks disagree about the size of the job

## What it finds
Ranks whose launcher's variables announce another number of ranks than those of rank 0, such as WORLD_SIZE.

## Why it matters
Ranks with the smaller number begin without the others; those with the larger one wait for ranks that never come. It
happens where nodes are started one by one with different options, or where a variable is left from another job.

## What to type
`env | grep -E 'RANK|SIZE|NNODES'` in the job's environment on each node; then start all nodes with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.ranks import SIZE, RanksFacts

LOOK = "env | grep -E 'RANK|SIZE|NNODES'"


@node_check("NC804", Severity.ERROR, RanksFacts, blocks_plan=True)
def world_size_differs(node: NodeView) -> Iterator[Problem]:
    texts = tuple(one.text for one in node[RanksFacts].troubles if one.kind == SIZE)
    if texts:
        yield Problem(texts[0], LOOK, texts[1:], look=True, summary="the ranks disagree about the size of the job")
