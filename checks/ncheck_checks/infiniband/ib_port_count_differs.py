"""A node has more or fewer InfiniBand ports than the others

## What it finds
Nodes whose number of HCA ports differs from the other nodes, counted separately for InfiniBand, Ethernet (RoCE) and
EFA. Nodes without any port are reported if other nodes have some. The numbers are compared within groups of one GPU
model. Not counted are ports of a model that fewer than half of these nodes have, such as an additional card for
storage, and Ethernet ports where no job can use RoCE on any node: the drivers of many ordinary cards make some.

## Why it matters
A card fell off the bus, or its driver was not loaded. NCCL then finds another number of devices on that node, and the
slowest node limits the job; some versions stop with "mixed local Net device counts".

## What to type
`lspci -d 15b3:` (of AWS's EFA `lspci -d 1d0f:`) on the named nodes shows the cards on the bus; `modprobe mlx5_ib`
loads the driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, split
from ncheck.facts.infiniband import EFA, HcaPort, InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.nccl.hca_ports import MISSING_ADAPTER, usable_ports


@cluster_check(
    "NC405", Severity.ERROR, InfinibandFacts, also=(LibraryFacts,), everywhere=True, by_kind=True, hardware=True
)
def ib_port_count_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    nodes = usable_ports(cluster)
    if unused := tuple(node for node, facts in nodes.items() if not facts.ports):
        yield NotApplicable("no InfiniBand port, and no job can use RoCE on any node", unused)
    holders = Counter(model for facts in nodes.values() for model in {_model(port) for port in facts.ports})
    rare = {model for model, count in holders.items() if 2 * count < len(nodes)}
    if parted := split({node: _counted(facts.ports, rare) for node, facts in nodes.items()}):
        what = "HCA ports differ"
        vendor = "1d0f" if any(layer == EFA for _, layer in holders) else "15b3"
        yield Problem(
            f"{what}: {parted.summary()}", f"lspci -d {vendor}:", nodes=parted.odd, look=True, summary=what,
            follows=MISSING_ADAPTER,
        )  # fmt: skip


def _model(port: HcaPort) -> tuple[str, str]:
    return port.hca_type, port.link_layer


def _counted(ports: tuple[HcaPort, ...], rare: set[tuple[str, str]]) -> str:
    """Count the ports by link layer, without those of rare models if there are others."""
    common = [port for port in ports if _model(port) not in rare]
    counts = Counter(port.link_layer for port in common or ports)
    return " + ".join(f"{count} x {layer}" for layer, count in sorted(counts.items())) or "no port"
