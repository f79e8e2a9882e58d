"""Something that should have been readable was not

## What it finds
Answers that a reached node owes and did not give: a command that did not end, a tool whose output could not be parsed,
a file that may not be read though every user normally may. The checks that need the fact are unknown on that node, not
passed. What an ordinary user can never read is not listed here: it is counted as skipped, needs root.

## Why it matters
A fault that cannot be seen is not a fault that is not there. A tool that hangs or fails is often the first sign of one.

## What to type
Run what the finding names on that node by hand, such as `timeout 10 nvidia-smi topo -m`, and see how it ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.probe import ProbeFacts
from ncheck.facts.run import UnreadFacts


@cluster_check("NC002", Severity.WARNING, UnreadFacts, alone=True, blocks_plan=True)
def fact_unread(cluster: Cluster) -> Iterator[Problem]:
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for node in cluster:
        for name, unread in node[UnreadFacts].unread.items():
            reasons.setdefault((name, unread.reason, unread.fix), []).append(node.name)
    for (name, reason, fix), nodes in reasons.items():
        yield Problem(_told(name, reason), fix or "ncheck explain NC002", nodes=tuple(nodes))


def _told(name: str, reason: str) -> str:
    """Say what is missing. The probe is no reading: it was not run, and why is all there is to say."""
    if name != ProbeFacts.__name__:
        return f"{name.removesuffix('Facts')} could not be read: {reason}"
    stands = reason.removeprefix("nothing is measured while ")
    return f"no bandwidth was measured{': ' if stands == reason else ' while '}{stands}"
