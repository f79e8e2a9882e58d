"""The EFA driver differs between nodes

## What it finds
Nodes of AWS whose EFA driver (the kernel's module efa) has another version than on the other nodes. The driver that
comes with the kernel has none and is called the kernel's own.

## Why it matters
Releases of the driver add what libfabric and NCCL's plug-in ask for, such as RDMA writes, DMA-BUF for GPU memory and
counters: on a node with an older one the data takes the slower path through main memory, and the whole job waits.

## What to type
`modinfo efa | grep ^version` on the named nodes; then install the same release of EFA's installer on all of them.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.net_plugin import EfaFacts


@parity_check("NC235", Severity.WARNING, EfaFacts, what="the EFA driver differs", fix="modinfo efa", look=True)
def efa_driver_differs(facts: EfaFacts) -> str | None:
    return facts.driver or "the kernel's own"
