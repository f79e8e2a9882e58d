"""A network file system was away for a time

## What it finds
Lines in the kernel log since boot by which an NFS server did not respond and came back, or did not respond until a
`soft` mount gave up, or a Lustre server evicted the node. Other checks report what does not answer now. Only root can
read the kernel log on a default machine (--sudo).

## Why it matters
Jobs that ran at that time stood still, or got "Input/output error" (soft mounts, evictions). If one node has many of
these and its peers have none, look at its network.

## What to type
`sudo journalctl -k -b --no-pager | grep -E 'nfs: server|was evicted by'` shows the messages with their times.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.storage_log import StorageLogFacts


@node_check("NC650", Severity.INFO, StorageLogFacts)
def network_storage_interrupted(node: NodeView) -> Iterator[Problem]:
    for server in node[StorageLogFacts].interrupted:
        times = "once" if server.lines == 1 else f"{server.lines} times"
        fix = "sudo journalctl -k -b --no-pager | grep -E 'nfs: server|was evicted by'"
        yield Problem(f"{server.of} was away {times} since boot", fix, (server.last,), look=True)
