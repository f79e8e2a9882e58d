"""A node has more or fewer InfiniBand ports than the others

## What it finds
Nodes whose number of HCA ports differs from the other nodes, counted separately for InfiniBand and Ethernet (RoCE).
Nodes without any port are reported if other nodes have some. The numbers are compared within groups of one GPU model.

## Why it matters
A card fell off the bus, or its driver was not loaded. NCCL then finds another number of devices on that node, and the
slowest node limits the job; some versions stop with "mixed local Net device counts".

## What to type
`lspci -d 15b3:` on the named nodes shows the cards on the bus; `modprobe mlx5_ib` loads the driver.
"""

from __future__ import annotations

from collections import Counter

from ncheck import Severity, parity_check
from ncheck.facts.infiniband import InfinibandFacts


@parity_check(
    "NC405", Severity.ERROR, InfinibandFacts, everywhere=True, by_kind=True, what="HCA ports differ",
    fix="lspci -d 15b3:", look=True,
)  # fmt: skip
def ib_port_count_differs(infiniband: InfinibandFacts) -> str:
    counts = Counter(port.link_layer for port in infiniband.ports)
    return " + ".join(f"{count} x {layer}" for layer, count in sorted(counts.items()))
