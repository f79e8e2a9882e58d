"""A network file system is read-only on a node

## What it finds
Nodes where a network file system is mounted read-only, while more than half of the nodes have it mounted at the same
place for reading and writing.

## Why it matters
A rank on that node cannot write its checkpoint or its log ("Read-only file system") and stops; the other ranks wait
for it.

## What to type
`findmnt PATH` on the named node and on a healthy one; then mount it again: `sudo mount -o remount,rw PATH`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.mounts import MountFacts


@cluster_check("NC614", Severity.WARNING, MountFacts)
def shared_mount_read_only(cluster: Cluster) -> Iterator[Problem]:
    facts = cluster.facts(MountFacts)
    for path in dict.fromkeys(path for own in facts.values() for path in own.shared):
        states = {node: own.shared[path].read_only for node, own in facts.items() if path in own.shared}
        odd = tuple(node for node, read_only in states.items() if read_only)
        if odd and 2 * (len(states) - len(odd)) > len(facts):
            fix = f"sudo mount -o remount,rw {quote(path)}"
            yield Problem(f"{path} is mounted read-only here, and for writing on other nodes", fix, nodes=odd)
