"""Each node's own ssh to the nodes that it would start ranks on: what it is asked, and about whom."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from doctor.collect.peers import PEERS
from doctor.mesh.edges import edges
from doctor.model.act import NotAsked, Questions
from doctor.model.evidence import Answer, JsonValue

if TYPE_CHECKING:
    from doctor.company import Company
    from doctor.model.node import Node
    from doctor.settings import Settings

_LEAST_FOR_A_PEER = 3.0  # seconds for one node's login to another, where many are to be tried


def spared_peers(company: Company) -> dict[str, str]:
    """Return the nodes from which no launch opens ssh, and why that is so."""
    found = edges(len(company.nodes), company.settings.mesh)
    others = (node.name for number, node in enumerate(company.nodes) if number not in found)
    return company.spared() or dict.fromkeys(others, "no launch opens ssh from here")


def ask_peers(company: Company, left: float) -> Questions:
    """Ask each node at the beginning of an edge for the nodes at its ends, those that were reached at all."""
    standing = {node.name for node in company.reached}
    questions: Questions = {}
    for number, others in edges(len(company.nodes), company.settings.mesh).items():
        ends = [company.nodes[other] for other in others]
        targets = [_peer(end, company.settings) for end in ends if end.name in standing]
        questions[company.nodes[number].name] = (_question(targets, company.settings, left),)
    return questions


def _question(targets: list[JsonValue], settings: Settings, left: float) -> Answer | NotAsked:
    if not targets:
        return NotAsked(PEERS, "no ssh to other nodes was tried from here: none of them was reached")
    each = min(settings.connect_timeout, max(_LEAST_FOR_A_PEER, left / (1 + len(targets) // 6)))
    asked: JsonValue = {"peers": targets, "timeout": each}
    return replace(PEERS, arguments=asked, timeout=max(1.0, left - 1.0))


def _peer(node: Node, settings: Settings) -> JsonValue:
    """Return how a node is reached, as the listing names it."""
    return {"target": node.name, "host": node.name, "port": node.port or settings.port,
            "user": node.user or settings.user}  # fmt: skip
