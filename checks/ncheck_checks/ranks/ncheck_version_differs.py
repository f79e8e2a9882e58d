"""Nodes of the job have different versions of ncheck

## What it finds
Nodes whose ncheck is of another version than that of rank 0.

## Why it matters
An older or newer ncheck may not know all questions: what it cannot answer is unknown there. The job itself does not
mind. But where ncheck differs, the rest of the environment may differ too.

## What to type
`python3 -m pip show cluster-ncheck` on the named nodes shows the version; install the same one everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.ranks import RanksFacts


@node_check("NC807", Severity.INFO, RanksFacts)
def ncheck_version_differs(node: NodeView) -> Iterator[Problem]:
    ranks = node[RanksFacts]
    if ranks.version and ranks.version != ranks.ours:
        yield Problem(
            f"its ncheck is {ranks.version}, that of rank 0 is {ranks.ours}", "python3 -m pip show cluster-ncheck",
            look=True,
        )  # fmt: skip
