"""A GPU was broken earlier since the node booted

## What it finds
Xid lines like those of gpu-xid-reported that no longer count as an error: the driver was loaded again after them, it
says of the GPU now that it needs no recovery (new drivers), or the GPU answers again that had fallen off the bus.

## Why it matters
The GPU works now. One that breaks again and again costs a job each time: compare the time of the last line, and how
many there are.

## What to type
`sudo journalctl -k -g NVRM` shows the lines with their times. If they return, test the GPU before the next job:
`dcgmi diag -r 3`, or ask its vendor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.facts.gpu_log import KernelLogFacts, of_repaired_gpus


@node_check("NC539", Severity.WARNING, KernelLogFacts, also=(GpuHealthFacts,))
def gpu_xid_repaired(node: NodeView) -> Iterator[Problem]:
    health = node.maybe(GpuHealthFacts)
    return of_repaired_gpus(node[KernelLogFacts], health if isinstance(health, GpuHealthFacts) else None)
