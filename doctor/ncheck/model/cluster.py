"""The cluster: the listed nodes with everything that is known of them so far, and the part of it that a check sees."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from ncheck.facts.links import Link, LinkFacts, Reach
from ncheck.facts.login import LoginFacts
from ncheck.facts.names import NameFacts
from ncheck.facts.probe import ProbeFacts, Skipped, Stage
from ncheck.facts.ssh_peers import PeerSshFacts
from ncheck.model.fact import Read
from ncheck.model.node import Node
from ncheck.settings import Settings

T = TypeVar("T")
FactType = type[object]
Facts = Mapping[FactType, object]


class UndeclaredReadError(Exception):
    """A check asked for a fact that it does not declare: the check is wrong, not the cluster."""


@dataclass(frozen=True)
class NodeView:
    """One node as one check may see it: its declared facts and nothing else."""

    name: str
    facts: Facts

    def __getitem__(self, fact: type[T]) -> T:
        """Return a fact of `reads`: it is there, or the engine would not have asked."""
        return cast("T", self._declared(fact))

    def maybe(self, fact: type[T]) -> Read[T]:
        """Return a fact of `also`: it may be Unread or Absent."""
        return cast("Read[T]", self._declared(fact))

    def _declared(self, fact: FactType) -> object:
        if fact not in self.facts:
            raise UndeclaredReadError(f"the check reads {fact.__name__} and does not declare it")
        return self.facts[fact]


@dataclass(frozen=True)
class Cluster:
    """Nodes in the order of the listing, and `known`: by node name, each fact, or why it is not there.

    `token` is random: the nodes of one run recognise each other by it. `declared` are the facts that a check may read;
    None outside checks, where a fact that nobody asked for is simply not known.
    """

    nodes: tuple[Node, ...]
    known: Mapping[str, Facts]
    settings: Settings = field(default_factory=Settings)
    token: str = field(default_factory=lambda: os.urandom(16).hex())
    declared: tuple[FactType, ...] | None = None

    @classmethod
    def of(cls, known: Mapping[str, Facts]) -> Cluster:
        """Return the cluster of these nodes, listed by nothing but their names."""
        return cls(tuple(map(Node, known)), known)

    def __iter__(self) -> Iterator[NodeView]:
        return (self[node.name] for node in self.nodes)

    def __getitem__(self, name: str) -> NodeView:
        return NodeView(name, self.known[name])

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)

    @property
    def connected(self) -> tuple[Node, ...]:
        """The nodes that were logged in to and whose connection has not failed since: those that can be asked."""
        logins = self.facts(LoginFacts)
        return tuple(
            node
            for node in self.nodes
            if (held := logins.get(node.name)) and held.login.reached and held.login.cause is None
        )

    @property
    def alone(self) -> str:
        """Say why no node is asked about the others; "" where they are."""
        if self.settings.mesh == "none":
            return "not asked (--mesh none)"
        return "one node alone has no peers" if len(self.nodes) == 1 else ""

    def spared(self) -> dict[str, str]:
        """Return every node, with why none is asked about the others; none where they are."""
        return dict.fromkeys((node.name for node in self.nodes), self.alone) if self.alone else {}

    def facts(self, fact: type[T]) -> dict[str, T]:
        """Return a fact by node name, of the nodes that have it."""
        if self.declared is not None and fact not in self.declared:
            raise UndeclaredReadError(f"the check reads {fact.__name__} and does not declare it")
        held = {name: self.known.get(name, {}).get(fact) for name in self.names}
        return {name: value for name, value in held.items() if isinstance(value, fact)}

    def connected_facts(self, fact: type[T]) -> dict[str, T]:
        """Return a fact by node name, of the connected nodes that have it: what a question may be made of."""
        held, connected = self.facts(fact), {node.name for node in self.connected}
        return {name: value for name, value in held.items() if name in connected}

    def only(self, names: Collection[str]) -> Cluster:
        """Return these nodes alone. What they tell of the others stays: see `without_others`."""
        return replace(self, nodes=tuple(node for node in self.nodes if node.name in names))

    def restricted(self, declared: tuple[FactType, ...]) -> Cluster:
        """Return the nodes with these facts alone: what a check is shown."""
        known = {name: {fact: self.known[name][fact] for fact in declared} for name in self.names}
        return replace(self, known=known, declared=declared)


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
    gone = [result.step for result in probed.results if not names.issuperset(result.step.group)]
    lost = (Skipped(step, LEFT_OUT) for step in gone if step.stage is Stage.ALL)
    return replace(
        probed,
        results=tuple(result for result in probed.results if result.step not in gone),
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
