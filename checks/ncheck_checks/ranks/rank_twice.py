"""Two processes have the same rank

## What it finds
Ranks for which more than one process came to the meeting of `ncheck.preflight()`, with their process ids and hosts; or
a second rank 0 on this host, of a job with the same MASTER_PORT and no other id.

## Why it matters
One of the two is not where the job needs it: some other rank is missing, and all wait for it. It happens where two
nodes are started with the same node rank, where RANK is left in a start-up file, where a job is started twice, or where
two jobs have one MASTER_PORT: give each its own.

## What to type
`env | grep RANK` in the job's environment on both hosts; then start each node with a node rank of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.ranks import TWICE, RanksFacts


@node_check("NC805", Severity.ERROR, RanksFacts, blocks_plan=True)
def rank_twice(node: NodeView) -> Iterator[Problem]:
    texts = tuple(one.text for one in node[RanksFacts].troubles if one.kind == TWICE)
    if texts:
        yield Problem(texts[0], "env | grep RANK", texts[1:], look=True, summary="two processes have the same rank")
