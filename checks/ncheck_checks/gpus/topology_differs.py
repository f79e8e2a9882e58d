"""The GPU topology of a node differs

## What it finds
Nodes on which `nvidia-smi topo -m` shows another path (NV#, PIX, PXB, PHB, NODE, SYS) between two GPUs, or between a
GPU and a NIC, than on the other nodes with the same GPU model; of AMD's GPUs, `amd-smi topology` shows another path
(XGMI, PCIE) between two. NICs are compared by device name, whether the driver prints NIC0 with a legend or mlx5_0.
Pairs that only some nodes show are not compared; the checks of counts report them.

## Why it matters
An NVLink is down, a card is in another slot, or a BIOS setting differs. NCCL builds its rings from these paths on each
node: the deviating node gets slower ones, and all others wait for it.

## What to type
`nvidia-smi topo -m` on the named node and on a healthy one; then `nvidia-smi nvlink -s` shows links that are down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncheck import Cluster, Inconclusive, Problem, Severity, Split, cluster_check, split
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.topology import TopologyFacts


def _differing_paths(nodes: Mapping[str, TopologyFacts]) -> dict[tuple[str, ...], list[tuple[str, Split[str]]]]:
    """Return the pairs whose path differs between the nodes that show them, grouped by the deviating nodes."""
    paths = {node: _paths(topology) for node, topology in nodes.items()}
    differing: dict[tuple[str, ...], list[tuple[str, Split[str]]]] = {}
    for pair in dict.fromkeys(pair for own in paths.values() for pair in own):
        if parted := split({node: own[pair] for node, own in paths.items() if pair in own}):
            differing.setdefault(parted.odd, []).append((f"{pair[0]} to {pair[1]}", parted))
    return differing


def _paths(topology: TopologyFacts) -> dict[tuple[str, str], str]:
    """Return the path of each pair of two GPUs, or of a GPU and a NIC, once; NICs go by their device name."""
    return {
        (row, topology.legend.get(column, column)): level
        for (row, column), level in topology.pairs.items()
        if row in topology.gpus and (column in topology.nics or _follows(row, column, topology.gpus))
    }


def _follows(row: str, column: str, gpus: tuple[str, ...]) -> bool:
    return column in gpus and gpus.index(row) < gpus.index(column)


@cluster_check("NC504", Severity.ERROR, TopologyFacts, also=(GpuFacts,), by_kind=True)
def topology_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    gpus = cluster.facts(GpuFacts)
    counts = {node: len(facts.gpus) for node, facts in gpus.items()}
    for node, topology in cluster.facts(TopologyFacts).items():
        if len(topology.gpus) < counts.get(node, 0):
            reason = f"{gpus[node].links_shown_by} shows {len(topology.gpus)} of the node's {counts[node]} GPUs"
            yield Inconclusive(reason, (node,))
    for nodes, pairs in _differing_paths(cluster.facts(TopologyFacts)).items():
        (first, parted), *others = pairs
        more = f", and {len(others)} more" if others else ""
        evidence = tuple(f"{pair}: {split.summary()}" for pair, split in pairs)
        summary = f"{first}: {parted.summary()}{more}"
        shown_by = gpus[nodes[0]].links_shown_by if nodes[0] in gpus else "nvidia-smi topo -m"
        yield Problem(summary, shown_by, evidence, nodes, look=True, summary="the GPU topology differs")
