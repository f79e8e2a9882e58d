"""Ranks of the job did not start

## What it finds
Ranks that did not come to the meeting of `ncheck.preflight()` in time, although the network let other ranks come: ranks
of other machines did, or the whole job is on one machine. The finding names them, and the host on which they should be,
as far as the launcher's variables and the ranks that came tell. A rank of a node from which others came did not call;
one of a node from which nobody came was not started, or cannot reach rank 0. rank-not-met is about ranks of which
nothing shows that they could have come.

## Why it matters
Every rank waits for all others when the job begins to communicate: `init_process_group`, `hvd.init()` and `MPI_Init`
wait for minutes, until torch says "The client socket has timed out", or for ever. A rank is missing because its process
was not started, ended before it came so far, or still loads data or modules from a slow file system.

## What to type
`ssh HOST ps -fu $USER` shows whether its processes run; the launcher's log says why they do not. If they are only slow,
call `ncheck.preflight(timeout=120)`, or set it: `export NCHECK_TIMEOUT=120`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, Cluster, Problem, Severity, cluster_check
from ncheck.facts.ranks import WAIT_LONGER, RanksFacts, missing_ranks


@cluster_check("NC801", Severity.ERROR, RanksFacts, alone=True, blocks_plan=True)
def rank_missing(cluster: Cluster) -> Iterator[Problem]:
    if missing := missing_ranks(cluster.facts(RanksFacts), could_come=True):
        yield Problem(
            missing.message, WAIT_LONGER, missing.evidence, missing.nodes, where=HERE, do=True,
            summary="ranks did not start",
        )  # fmt: skip
