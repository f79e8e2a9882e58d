"""Which names each node is asked to look up: those that a launch looks up there."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

from doctor.collect.names import NAMES
from doctor.mesh.edges import edges
from doctor.model.act import NotAsked, Questions
from doctor.model.evidence import JsonValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from doctor.company import Company
    from doctor.model.node import Node

_PATIENCE = 10.0  # seconds that a node's resolver gets for all of them


def ask_names(company: Company, left: float) -> Questions:
    """Ask each node for its own name as listed, the first node's, where ranks meet, and those that it would ssh to."""
    found = edges(len(company.nodes), company.settings.mesh)
    questions: Questions = {}
    for number, node in enumerate(company.nodes):
        names = list(_names(company.nodes, (number, 0, *found.get(number, ()))))
        asked: JsonValue = {"names": list(names)}
        limit = max(1.0, min(_PATIENCE, left - 1.0))
        why = "the nodes are listed by address: there is no name to look up"
        questions[node.name] = (replace(NAMES, arguments=asked, timeout=limit) if names else NotAsked(NAMES, why),)
    return questions


def _names(nodes: tuple[Node, ...], wanted: Iterable[int]) -> Iterator[str]:
    for number in dict.fromkeys(wanted):
        if not nodes[number].local and not _is_address(nodes[number].name):
            yield nodes[number].name


def _is_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
