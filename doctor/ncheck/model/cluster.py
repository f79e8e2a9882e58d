"""The nodes of a run, as an act that needs several of them sees them: who was reached, and what is known by now."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ncheck.facts.links import Link, LinkFacts, Reach
from ncheck.facts.login import LoginFacts
from ncheck.facts.names import NameFacts
from ncheck.facts.probe import ProbeFacts, Skipped, Stage
from ncheck.facts.ssh_peers import PeerSshFacts
from ncheck.judge import Facts
from ncheck.model.check import FactType
from ncheck.model.node import Node
from ncheck.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class Company:
    """`known` is the run's own, and grows from act to act. `token` is what its nodes know each other by."""

    nodes: tuple[Node, ...]
    known: Mapping[str, Facts]
    settings: Settings
    token: str = field(default_factory=lambda: os.urandom(16).hex())

    @property
    def reached(self) -> tuple[Node, ...]:
        """The nodes that were logged in to, and whose connection still stands, in the order of the listing."""
        return tuple(node for node in self.nodes if self._stands(node.name))

    @property
    def alone(self) -> str:
        """Say why no node is asked about the others; "" where they are."""
        if self.settings.mesh == "none":
            return "not asked (--mesh none)"
        return "one node alone has no peers" if len(self.nodes) == 1 else ""

    def spared(self) -> dict[str, str]:
        """Return every node, with why none is asked about the others; none where they are."""
        return dict.fromkeys((node.name for node in self.nodes), self.alone) if self.alone else {}

    def each(self, fact: type[T]) -> dict[str, T]:
        """Return a fact by node, of the reached nodes that have it."""
        held = {node.name: self.known[node.name].get(fact) for node in self.reached}
        return {name: value for name, value in held.items() if isinstance(value, fact)}

    def _stands(self, name: str) -> bool:
        login = self.known.get(name, {}).get(LoginFacts)
        return isinstance(login, LoginFacts) and login.login.reached and login.login.cause is None


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
