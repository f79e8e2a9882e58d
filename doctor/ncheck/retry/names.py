"""Which node of the job a log or a program means, by a name, an address or a rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ncheck.model.report import Report


def known_as(report: Report) -> dict[str, tuple[str, ...]]:
    """Return the names and addresses that are those of one node alone: 127.0.0.1 is everybody's."""
    words = {
        node.name: {
            node.name,
            node.host_name,
            node.host_name.partition(".")[0],
            *(one.partition("/")[0] for own in node.addresses.values() for one in own),
        }
        - {""}
        for node in report.nodes
    }
    nodes_of = Counter(word for own in words.values() for word in own)
    return {node: tuple(sorted(word for word in own if nodes_of[word] == 1)) for node, own in words.items()}


def nodes_meant(
    named: Sequence[str], ranks: Sequence[int], report: Report, slots: Mapping[str, int]
) -> tuple[str, ...]:
    """Return the nodes of the job that a log names; where it names ranks alone, those of the ranks.

    `slots` are the ranks of each node in their order.
    """
    if named:
        node_of = {word: node for node, words in known_as(report).items() for word in words}
        found = [node_of[name] for name in named if name in node_of]
    else:
        by_rank = [node for node, count in slots.items() for _ in range(count)]
        found = [by_rank[rank] for rank in ranks if rank < len(by_rank)]
    return tuple(dict.fromkeys(node for node in found if node not in report.dropped))
