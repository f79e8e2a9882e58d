"""The paths between GPUs and NICs on several nodes, laid over each other."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.model.facts import TopologyFacts
from doctor.reasoning.parity import Split, split


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
