"""A fact could not be read

## What it finds
Answers that a reached node should have given and did not: a command that hung, a tool whose output could not be parsed,
or a file that is unreadable although every user normally may read it. Checks that need the fact are unknown on that
node, not passed. Facts that only root can read are not listed here; those checks are skipped with "needs root".

## Why it matters
A fault that cannot be seen may still be there. A tool that hangs or fails is often its first sign.

## What to type
Run the command that the finding names on that node, such as `timeout 10 nvidia-smi topo -m`, and see how it ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, Cluster, Problem, Severity, cluster_check
from ncheck.facts.probe import ProbeFacts
from ncheck.facts.run import UnreadFacts


@cluster_check("NC002", Severity.WARNING, UnreadFacts, alone=True, blocks_plan=True)
def fact_unread(cluster: Cluster) -> Iterator[Problem]:
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for node in cluster:
        for name, unread in node[UnreadFacts].unread.items():
            reasons.setdefault((name, unread.reason, unread.fix), []).append(node.name)
    for (name, reason, fix), nodes in reasons.items():
        probe = name == ProbeFacts.__name__
        failure = "no bandwidth was measured" if probe else f"{name.removesuffix('Facts')} could not be read"
        typed = fix or "ncheck explain NC002"
        where = HERE if typed.startswith("ncheck ") else ""
        yield Problem(f"{failure}: {reason}", typed, nodes=tuple(nodes), where=where, look=True, summary=failure)
