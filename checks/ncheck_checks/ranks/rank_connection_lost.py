"""The connection of a rank to rank 0 broke

## What it finds
Ranks that came to the meeting of `ncheck.preflight()` and whose connection broke, although their process did not end,
or who sent what ncheck does not send: another program that knows the job's token. Also processes that came as one rank,
or with another WORLD_SIZE, where every rank is there and one of them may be a stranger: it is on another host, and the
job's id can be guessed.

## Why it matters
These ranks go on without a verdict. A network that cuts connections will also cut those of the job.

## What to type
`sudo dmesg -T` on the named node shows errors of its network card; `ncheck nodes.txt` tries all connections again.
Against strangers, on all ranks: `export NCHECK_TOKEN=SECRET`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.ranks import PORT, SIZE, TWICE, RanksFacts


@node_check("NC806", Severity.WARNING, RanksFacts)
def rank_connection_lost(node: NodeView) -> Iterator[Problem]:
    texts = tuple(one.text for one in node[RanksFacts].troubles if one.kind not in (PORT, SIZE, TWICE))
    if texts:
        yield Problem(texts[0], "sudo dmesg -T", texts[1:], look=True)
