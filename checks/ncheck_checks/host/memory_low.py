"""Little memory is available on a node

## What it finds
Nodes where less than a twentieth of the memory is available before the job starts, or less than half of what is
available on most other nodes with as much memory; and nodes whose processes waited for memory in a tenth of the last
minute, as where memory is swapped in and out. Memory that is reserved for huge pages is not available to others.

## Why it matters
The kernel ends the largest process when memory is full: a rank disappears with "Killed" or exit status 137, and the
others wait for it. Processes that a job has left, a RAM disk in /dev/shm or huge pages take the memory. A node that
swaps is slow, and every rank waits for it.

## What to type
`free -h; ps -eo rss,user,comm --sort=-rss | head` shows what has it, `df -h -t tmpfs` RAM disks, `grep -i huge
/proc/meminfo` huge pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.host_load import HostLoadFacts

GIB = 2**30
LEAST = 0.05  # of the node's memory
OF_USUAL = 0.5  # of what is available on other nodes
ALIKE = 0.1  # nodes whose memory differs by less are compared
STALLED = 0.1  # of the last minute
FIX = "free -h; df -h -t tmpfs; ps -eo rss,user,comm --sort=-rss | head"


@cluster_check("NC621", Severity.WARNING, HostLoadFacts, alone=True)
def memory_low(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    nodes = cluster.facts(HostLoadFacts)
    most = max((load.available or 0 for load in nodes.values()), default=0)
    for node, load in nodes.items():
        if not load.memory or load.available is None:
            yield NotApplicable("the node does not show its memory", (node,))
            continue
        usual = _usual(load.memory, nodes) if load.available < OF_USUAL * most else 0
        if load.available < max(LEAST * load.memory, OF_USUAL * usual):
            message = f"{load.available / GIB:.1f} GiB of {load.memory / GIB:.1f} GiB of memory are available"
            more = f"; {usual / GIB:.1f} GiB on other nodes" if load.available < OF_USUAL * usual else ""
            huge = (f"{load.hugepages / GIB:.1f} GiB are reserved for huge pages",) if load.hugepages else ()
            yield Problem(message + more, FIX, huge, (node,), look=True, summary="little memory is available")
        elif load.stalled is not None and load.stalled >= STALLED:
            swap = load.swap and f"{load.swap.used / GIB:.1f} GiB of {load.swap.limit / GIB:.1f} GiB of swap are in use"
            message = f"processes wait for memory in {load.stalled:.0%} of the time"
            yield Problem(message, FIX, (swap,) if swap else (), (node,), look=True, summary="memory is short")


def _usual(memory: int, nodes: Mapping[str, HostLoadFacts]) -> int:
    """Return what is available on most nodes with as much memory."""
    alike = sorted(
        load.available
        for load in nodes.values()
        if load.memory and load.available is not None and abs(load.memory - memory) < ALIKE * memory
    )
    return alike[len(alike) // 2]
