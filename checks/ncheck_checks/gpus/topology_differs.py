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

from collections.abc import Iterator, Mapping

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.topology import TopologyFacts
from ncheck.parity import Split, split


def paths_apart(nodes: Mapping[str, TopologyFacts]) -> dict[tuple[str, ...], list[tuple[str, Split[str]]]]:
    """Return the pairs whose path is not the same on the nodes that show them, by the nodes that are odd in them."""
    paths = {node: _paths(topology) for node, topology in nodes.items()}
    apart: dict[tuple[str, ...], list[tuple[str, Split[str]]]] = {}
    for pair in dict.fromkeys(pair for held in paths.values() for pair in held):
        if parted := split({node: held[pair] for node, held in paths.items() if pair in held}):
            apart.setdefault(parted.odd, []).append((f"{pair[0]} to {pair[1]}", parted))
    return apart


def _paths(topology: TopologyFacts) -> dict[tuple[str, str], str]:
    """Return the path of each pair once, between two GPUs or a GPU and a NIC, NICs by the name of their device."""
    return {
        (row, topology.legend.get(column, column)): level
        for (row, column), level in topology.pairs.items()
        if row in topology.gpus and (column in topology.nics or _follows(row, column, topology.gpus))
    }


def _follows(row: str, column: str, gpus: tuple[str, ...]) -> bool:
    return column in gpus and gpus.index(row) < gpus.index(column)


@cluster_check("NC504", Severity.ERROR, TopologyFacts, by_kind=True)
def topology_differs(cluster: Cluster) -> Iterator[Problem]:
    for nodes, pairs in paths_apart(cluster.facts(TopologyFacts)).items():
        (first, parted), *others = pairs
        more = f", and {len(others)} more" if others else ""
        evidence = tuple(f"{pair}: {split.told()}" for pair, split in pairs)
        yield Problem(f"{first}: {parted.told()}{more}", "nvidia-smi topo -m", evidence, nodes)
