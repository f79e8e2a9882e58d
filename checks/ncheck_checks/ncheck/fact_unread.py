"""A fact could not be read

## What it finds
Answers that a reached node should have given and did not: a command that hung, a tool whose output could not be parsed,
or a file that is unreadable although every user normally may read it. Checks that need the fact are unknown on that
node, not passed. Facts that only root can read are not listed here; those checks are skipped with "needs root".

## Why it matters
A fault that cannot be seen may still be there. A tool that hangs or fails is often its first sign.

## What to type
Run the command that the finding names on that node, such as `timeout 10 nvidia-smi topo -m`, and see how it ends. If
sudo refused: ncheck runs `sudo -n`, which never asks for a password; `sudo -n true` on the node shows why it refuses.
Run without `--sudo`, or let an administrator allow it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, Cluster, Problem, Severity, Unread, cluster_check
from ncheck.facts.gpus import DRIVER_FAILS, DRIVER_HANGS, OF_DRIVER
from ncheck.facts.mpi import MPI_FAILS
from ncheck.facts.run import UnreadFacts


@cluster_check("NC002", Severity.WARNING, UnreadFacts, alone=True, blocks_plan=True)
def fact_unread(cluster: Cluster) -> Iterator[Problem]:
    facts: dict[tuple[str, Unread], dict[str, None]] = {}  # those that have the same reason on a node
    for node in cluster:
        for name, unread in node[UnreadFacts].unread.items():
            facts.setdefault((node.name, unread), {})[name] = None
    nodes: dict[tuple[tuple[str, ...], Unread], list[str]] = {}
    for (node_name, unread), names in facts.items():
        nodes.setdefault((tuple(names), unread), []).append(node_name)
    for (names_of_facts, unread), members in nodes.items():
        failure, typed = _failure(names_of_facts), unread.fix or "ncheck explain NC002"
        where = HERE if typed.startswith("ncheck ") else ""
        follows = MPI_FAILS if names_of_facts == ("MpiFacts",) else ""
        if OF_DRIVER.issuperset(names_of_facts):
            follows = DRIVER_HANGS if unread.hung else DRIVER_FAILS
        yield Problem(
            f"{failure}: {unread.reason}", typed, nodes=tuple(members), where=where, look=True, summary=failure,
            follows=follows,
        )  # fmt: skip


def _failure(names: tuple[str, ...]) -> str:
    if names == ("ProbeFacts",):
        return "no bandwidth was measured"
    return f"{', '.join(name.removesuffix('Facts') for name in names)} could not be read"
