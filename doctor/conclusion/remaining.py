"""What is known of some of the nodes alone: what they tell of the others is left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from doctor.engine import Facts
from doctor.model.check import FactType
from doctor.model.facts import Link, LinkFacts, NameFacts, PeerSshFacts, ProbeFacts, Reach, Skipped, Stage

LEFT_OUT = (
    "it ran with a node that is left out: list the others alone (--good-nodes FILE), and ncheck probe measures them"
)


def among(facts: Mapping[str, Facts], names: Collection[str]) -> dict[str, Facts]:
    """Return the facts of these nodes, in the order of the listing, without what they tell of any other."""
    kept = frozenset(names)
    return {node: _without_others(held, kept) for node, held in facts.items() if node in kept}


def _without_others(held: Facts, names: frozenset[str]) -> Facts:
    changed: dict[FactType, object] = {}
    if isinstance(peers := held.get(PeerSshFacts), PeerSshFacts):
        changed[PeerSshFacts] = PeerSshFacts(tuple(peer for peer in peers.peers if peer.target in names))
    if isinstance(links := held.get(LinkFacts), LinkFacts):
        changed[LinkFacts] = _links(links, names)
    if isinstance(known := held.get(NameFacts), NameFacts):
        changed[NameFacts] = NameFacts({name: told for name, told in known.names.items() if name in names})
    if isinstance(probed := held.get(ProbeFacts), ProbeFacts):
        changed[ProbeFacts] = _measured(probed, names)
    return {**held, **changed}


def _measured(probed: ProbeFacts, names: frozenset[str]) -> ProbeFacts:
    """Keep the steps that these nodes ran by themselves; what they would give without the others nobody measured."""
    gone = [turn.step for turn in probed.turns if not names.issuperset(turn.step.group)]
    lost = (Skipped(step, LEFT_OUT) for step in gone if step.stage is Stage.ALL)
    return replace(
        probed,
        turns=tuple(turn for turn in probed.turns if turn.step not in gone),
        skipped=(*(one for one in probed.skipped if names.issuperset(one.step.group)), *lost),
    )


def _links(links: LinkFacts, names: frozenset[str]) -> LinkFacts:
    gone = [link for link in links.broken if link.target not in names]
    return replace(
        links,
        reaches=tuple(_reach(reach, gone) for reach in links.reaches),
        broken=tuple(link for link in links.broken if link.target in names),
        tried_to=links.tried_to & names,
    )


def _reach(reach: Reach, gone: list[Link]) -> Reach:
    """Count no failure towards a node that is gone; which of the others were reached is not told one by one."""
    lost = sum((link.subnet, link.source, link.port) == (reach.subnet, reach.source, 0) for link in gone)
    return replace(reach, tried=max(reach.reached, reach.tried - lost))
