"""A node has more or fewer InfiniBand ports

## What it finds
Nodes that show another number of HCA ports than the rest, InfiniBand and Ethernet (RoCE) counted apart. Nodes without
any fail where others of their kind have some. Nodes are compared within groups of one GPU model.

## Why it matters
A card that fell off the bus, or a driver that was not loaded. NCCL then finds another number of devices on that node
and the slowest node sets the pace; some versions stop with "mixed local Net device counts".

## What to type
`lspci -d 15b3:` on the named nodes shows which cards the bus still sees; `modprobe mlx5_ib` loads the driver.
"""

from __future__ import annotations

from collections import Counter

from ncheck import Severity, parity_check
from ncheck.facts.infiniband import InfinibandFacts


@parity_check("NC405", Severity.ERROR, InfinibandFacts, everywhere=True, what="HCA ports differ", fix="lspci -d 15b3:")
def ib_port_count_differs(infiniband: InfinibandFacts) -> str:
    counts = Counter(port.link_layer for port in infiniband.ports)
    return " + ".join(f"{count} x {layer}" for layer, count in sorted(counts.items()))
