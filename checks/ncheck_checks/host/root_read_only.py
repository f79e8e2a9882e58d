"""The root file system of a node is read-only

## What it finds
Nodes whose root file system is mounted read-only while that of other nodes is not. Images that are read-only on every
node by design are not reported.

## Why it matters
The kernel remounts a file system read-only after errors of its disk. The node still answers, but jobs cannot write
there, nor can the system's own services: logins, logs and drivers fail one after the other.

## What to type
`sudo dmesg | grep -iE 'remount|I/O error'` on the node shows the disk's errors. Take the node out of service and check
the disk before `sudo mount -o remount,rw /`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, Unread, cluster_check
from ncheck.facts.folders import FolderFacts


@cluster_check("NC609", Severity.ERROR, FolderFacts, hardware=True)
def root_read_only(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    roots = {node: facts.root for node, facts in cluster.facts(FolderFacts).items()}
    for node, root in roots.items():
        if isinstance(root, Unread):
            yield Inconclusive(root.reason, (node,))
    read_only = {node: root.read_only for node, root in roots.items() if not isinstance(root, Unread)}
    nodes = tuple(node for node, state in read_only.items() if state)
    if nodes and not all(read_only.values()):
        fix = "sudo dmesg | grep -iE 'remount|I/O error'"
        yield Problem("the root file system is mounted read-only", fix, nodes=nodes, look=True)
