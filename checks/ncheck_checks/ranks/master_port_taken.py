"""Another program has the port of rank 0

## What it finds
MASTER_PORT on the host of rank 0, on which another program listens: the finding names it, or its user. It is looked at
in jobs that are started with RANK, WORLD_SIZE and MASTER_PORT and no launcher: torchrun and others hold the port for
their ranks. A program that started rank 0 may hold it too.

## Why it matters
Rank 0 listens on MASTER_PORT for the others. It ends with "Address already in use", or the other ranks connect to the
wrong program and wait.

## What to type
`ss -ltnp` on that host shows the program. End it, or give all ranks another port: `export MASTER_PORT=29511`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.ranks import PORT, RanksFacts


@node_check("NC808", Severity.WARNING, RanksFacts)
def master_port_taken(node: NodeView) -> Iterator[Problem]:
    texts = tuple(one.text for one in node[RanksFacts].troubles if one.kind == PORT)
    if texts:
        yield Problem(texts[0], "ss -ltnp", texts[1:], look=True, summary="another program has MASTER_PORT")
