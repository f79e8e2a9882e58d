"""The cluster: the listed nodes with everything that is known of them so far, and the part of it that a check sees."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast

from ncheck.facts.login import LoginFacts
from ncheck.model.fact import Read
from ncheck.model.node import Node

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

    @cached_property
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
        """Return these nodes alone, with all that is known of them."""
        return replace(self, nodes=tuple(node for node in self.nodes if node.name in names))

    def restricted(self, declared: tuple[FactType, ...]) -> Cluster:
        """Return the nodes with these facts alone: what a check is shown."""
        known = {name: {fact: self.known[name][fact] for fact in declared} for name in self.names}
        return replace(self, known=known, declared=declared)

    def subset(self, names: Collection[str]) -> Cluster:
        """Return these nodes as if the others had never been listed: facts lose what they hold about others."""
        kept = frozenset(names)
        known = {name: {fact: _among(value, kept) for fact, value in self.known[name].items()} for name in kept}
        return replace(self.only(kept), known=known)


def _among(fact: object, names: frozenset[str]) -> object:
    return fact.among(names) if hasattr(fact, "among") else fact
