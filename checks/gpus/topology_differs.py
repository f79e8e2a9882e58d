"""GPUs or NICs hang together differently on a node

## What it finds
Nodes on which `nvidia-smi topo -m` shows another path (NV#, PIX, PXB, PHB, NODE, SYS) between two GPUs, or a GPU and
a NIC, than on the rest with the same GPU model. NICs go by their device name, whether the driver prints NIC0 with a
legend or mlx5_0. Pairs that only some nodes show are not compared: the checks of counts tell of those.

## Why it matters
A link of NVLink that is down, a card in another slot or another BIOS setting. NCCL builds its rings from these paths
on each node: the odd node gets slower ones, and all others wait for it.

## What to type
`nvidia-smi topo -m` on the named node and on a healthy one; then `nvidia-smi nvlink -s` for links that are down.
"""

from __future__ import annotations

from collections.abc import Iterator

from doctor import ClusterView, Problem, Severity, cluster_check
from doctor.model.facts import TopologyFacts
from doctor.reasoning.paths import paths_apart


@cluster_check("NC504", Severity.ERROR, TopologyFacts, by_kind=True)
def topology_differs(cluster: ClusterView) -> Iterator[Problem]:
    for nodes, pairs in paths_apart(cluster.each(TopologyFacts)).items():
        (first, parted), *others = pairs
        more = f", and {len(others)} more" if others else ""
        evidence = tuple(f"{pair}: {split.told()}" for pair, split in pairs)
        yield Problem(f"{first}: {parted.told()}{more}", "nvidia-smi topo -m", evidence, nodes)
