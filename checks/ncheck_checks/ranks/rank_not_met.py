"""Ranks of the job did not come to the meeting of ncheck

## What it finds
Ranks that did not reach rank 0 in time, where no rank of another machine did: a firewall may block the ports of ncheck
and let those of the job through, so the ranks may well be there. Only the nodes whose ranks came were checked.
rank-missing is about ranks that must have been able to come.

## Why it matters
If the ranks do not run, the others will wait for them. If they run, nothing of their nodes was checked.

## What to type
Let ncheck use a port that is open between the nodes, on the host of rank 0: `export NCHECK_RENDEZVOUS=HOST:PORT`.
If the ranks are only slow: `export NCHECK_TIMEOUT=120`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, Cluster, Problem, Severity, cluster_check
from ncheck.facts.ranks import WAIT_LONGER, RanksFacts, missing_ranks


@cluster_check("NC802", Severity.WARNING, RanksFacts, alone=True)
def rank_not_met(cluster: Cluster) -> Iterator[Problem]:
    if missing := missing_ranks(cluster.facts(RanksFacts), could_come=False):
        yield Problem(
            f"{missing.message}; a firewall may block ncheck's ports", WAIT_LONGER, missing.evidence,
            missing.nodes, where=HERE, do=True, summary="ranks did not come",
        )  # fmt: skip
