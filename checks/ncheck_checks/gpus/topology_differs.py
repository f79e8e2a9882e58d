"""The GPU topology of a node differs

## What it finds
Nodes whose matrix shows another path (NV#, PIX, PXB, PHB, NODE, SYS) between two GPUs, or between a GPU and a NIC, than
that of the other nodes with the same GPU model. The matrix is that of `nvidia-smi topo -m`, or else made from the PCI
bus and NVML; of AMD's GPUs it is that of `amd-smi topology` (XGMI, PCIE), without NICs. NICs are compared by device
name, whether the driver prints NIC0 with a legend or mlx5_0. Pairs that only some nodes show are not compared; the
checks of counts report them.

## Why it matters
An NVLink is down, a card is in another slot, or a BIOS setting differs. NCCL builds its rings from these paths on each
node: the deviating node gets slower ones, and all others wait for it.

## What to type
`lspci -tv` on the named node and on a healthy one shows behind which slot or switch each device is;
`nvidia-smi nvlink -s` shows links that are down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from ncheck import Cluster, Inconclusive, Problem, Severity, Split, cluster_check, split
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.topology.judgement import UNEVEN, in_words

Differing = list[tuple[tuple[str, str], Split[str]]]  # each pair, with its paths


def _differing_paths(nodes: Mapping[str, TopologyFacts]) -> dict[tuple[str, ...], Differing]:
    """Return the pairs whose path differs between the nodes that show them, grouped by the deviating nodes."""
    shown = {id(topology): topology for topology in nodes.values()}  # nodes that show the same share one
    kinds = {kind: _paths(topology) for kind, topology in shown.items()}
    first, *others = kinds.values()
    if all(own == first for own in others):
        return {}
    paths = {node: kinds[id(topology)] for node, topology in nodes.items()}
    differing: dict[tuple[str, ...], Differing] = {}
    for pair in dict.fromkeys(pair for own in paths.values() for pair in own):
        if parted := split({node: own[pair] for node, own in paths.items() if pair in own}):
            differing.setdefault(parted.odd, []).append((pair, parted))
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


@cluster_check("NC504", Severity.ERROR, TopologyFacts, also=(GpuFacts,), by_kind=True, hardware=True)
def topology_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    gpus = cluster.facts(GpuFacts)
    counts = {node: len(facts.gpus) for node, facts in gpus.items()}
    matrices = cluster.facts(TopologyFacts)
    for node, topology in matrices.items():
        if len(topology.gpus) < counts.get(node, 0):
            reason = f"{topology.source} shows {len(topology.gpus)} of the node's {counts[node]} GPUs"
            yield Inconclusive(reason, (node,))
    for nodes, pairs in _differing_paths(matrices).items():
        if all(_of_other_sources(parted, matrices) for _, parted in pairs):
            yield Inconclusive("not comparable: some nodes' paths are from nvidia-smi, others' computed", nodes)
            continue
        alike: dict[Split[str], list[tuple[str, str]]] = {}
        for pair, parted in pairs:
            alike.setdefault(parted, []).append(pair)
        (parted, first), *others = alike.items()
        more = f", and {sum(map(len, alike.values())) - len(first)} more" if others else ""
        evidence = tuple(f"{pair[0]} to {pair[1]}: {split.summary()}" for pair, split in pairs)
        message = f"{_described(first)}: {_in_words(parted)}{more}"
        summary = "the GPU topology differs"
        shown_by = gpus[nodes[0]].links_shown_by if nodes[0] in gpus else "lspci -tv"
        yield Problem(message, shown_by, evidence, nodes, look=True, summary=summary, follows=UNEVEN)


def _of_other_sources(parted: Split[str], matrices: Mapping[str, TopologyFacts]) -> bool:
    """Return whether no source shows two of the paths: then the sources may differ, and not the nodes."""
    sources = [{matrices[node].source for node in nodes} for _, nodes in parted.groups]
    return all(one.isdisjoint(other) for one, other in combinations(sources, 2))


def _described(pairs: Sequence[tuple[str, str]]) -> str:
    """Name pairs by the device that all of them have, if there is one: "GPU3 to GPU0, GPU1 and 5 more"."""
    common = [device for device in pairs[0] if all(device in pair for pair in pairs)]
    if common:
        names = [pair[1] if pair[0] == common[0] else pair[0] for pair in pairs]
        return f"{common[0]} to {_some(names)}"
    return _some([f"{one} to {other}" for one, other in pairs])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


_SHOWN = 3


def _in_words(parted: Split[str]) -> str:
    return Split(tuple((in_words(level), nodes) for level, nodes in parted.groups)).summary()
