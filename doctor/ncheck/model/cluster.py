"""The cluster: the listed nodes with everything that is known of them so far, and the part of it that a check sees."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar, cast

from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Login
from ncheck.model.fact import Absent, Read, Unread, name_of
from ncheck.model.node import Node

T = TypeVar("T")
FactType = type[object]
Facts = Mapping[FactType, object]


@dataclass(frozen=True)
class LoginFacts:
    """The result of the login; every node has this fact, unreachable nodes too.

    `noise` is what the node's start-up files printed on stdout, made safe for a terminal, at most a few lines.
    `python_seconds`: seconds that python3 needed to start there; `shell_seconds`: seconds that the login shell
    needed for its start-up files; 0 is not measured. `python`: where no python3 runs, the path of one that exists;
    "" if none does. `old_python`: of one that is too old for the agent.
    """

    login: Login
    noise: str = ""
    python_seconds: float = 0.0
    shell_seconds: float = 0.0
    python: str = ""
    old_python: str = ""


class UndeclaredReadError(Exception):
    """A check asked for a fact that it does not declare: the check is wrong, not the cluster."""


class NodeView:
    """One node as one check may see it: its declared facts and nothing else.

    `named`: the check asked which node it is. Where it did not, it says the same of all nodes with the same facts.
    """

    def __init__(self, name: str, facts: Facts, declared: Collection[FactType] | None = None) -> None:
        self._name, self._facts, self._declared = name, facts, facts.keys() if declared is None else declared
        self.named = False

    @property
    def name(self) -> str:
        self.named = True
        return self._name

    def __getitem__(self, fact: type[T]) -> T:
        """Return a fact of `reads`: it is there, or the engine would not have asked."""
        return cast("T", self._read(fact))

    def maybe(self, fact: type[T]) -> Read[T]:
        """Return a fact of `also`: it may be Unread or Absent."""
        return cast("Read[T]", self._read(fact))

    def _read(self, fact: FactType) -> object:
        if fact not in self._declared:
            raise UndeclaredReadError(f"the check reads {fact.__name__} and does not declare it")
        return self._facts[fact]


@dataclass(frozen=True)
class Cluster:
    """Nodes in the order of the listing, and `known`: by node name, each fact, or why it is not there.

    `token` is random: the nodes of one run recognise each other by it. `declared` are the facts that a check may read
    of `whole`; None outside checks, where a fact that nobody asked for is simply not known.
    """

    nodes: tuple[Node, ...]
    known: Mapping[str, Facts]
    token: str = field(default_factory=lambda: os.urandom(16).hex())
    declared: Collection[FactType] | None = None
    whole: Cluster | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, known: Mapping[str, Facts]) -> Cluster:
        """Return the cluster of these nodes, listed by nothing but their names."""
        return cls(tuple(map(Node, known)), known)

    def __iter__(self) -> Iterator[NodeView]:
        return map(self.__getitem__, self.names)

    def __getitem__(self, name: str) -> NodeView:
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = NodeView(name, (self.whole or self).known[name], self.declared)
        return view

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)

    @cached_property
    def connected(self) -> tuple[Node, ...]:
        """The nodes that were logged in to and whose connection has not failed since: those that can be asked."""
        logins = self.facts(LoginFacts)
        return tuple(
            node
            for node in self.nodes
            if (held := logins.get(node.name)) and held.login.reached and held.login.cause is None
        )

    def facts(self, fact: type[T]) -> Mapping[str, T]:
        """Return a fact by node name, of the nodes that have it."""
        return cast("Mapping[str, T]", self._parted(fact)[0])

    def missing(self, fact: FactType) -> Mapping[str, Unread | Absent]:
        """Return why a fact is not there by node name, of the nodes that say why."""
        return self._parted(fact)[1]

    def _parted(self, fact: FactType) -> tuple[Mapping[str, object], Mapping[str, Unread | Absent]]:
        if self.whole is not None:
            if fact not in (self.declared or ()):
                raise UndeclaredReadError(f"the check reads {fact.__name__} and does not declare it")
            return self.whole._parted(fact)  # noqa: SLF001  of the same class
        if fact not in self._by_fact:
            there, absent = dict[str, object](), dict[str, Unread | Absent]()
            for name in self.names:
                value = self.known[name].get(fact) if name in self.known else None
                if isinstance(value, fact):
                    there[name] = value
                elif isinstance(value, (Unread, Absent)):
                    absent[name] = value
            self._by_fact[fact] = MappingProxyType(there), MappingProxyType(absent)
        return self._by_fact[fact]

    @cached_property
    def _by_fact(self) -> dict[FactType, tuple[Mapping[str, object], Mapping[str, Unread | Absent]]]:
        """What was read of each fact: the cluster never changes, and many checks read the same."""
        return {}

    @cached_property
    def _views(self) -> dict[str, NodeView]:
        """What was returned of each node."""
        return {}

    def asked(self, name: str) -> bool:
        """Tell whether a fact of this name was asked for. Who only shows facts need not import all that there are."""
        return any(name_of(fact) == name for fact in set[FactType]().union(*self.known.values()))

    def facts_called(self, name: str) -> dict[str, Any]:
        """Return the fact of this name by node name, of the nodes that have it."""
        found = {fact for fact in set[FactType]().union(*self.known.values()) if name_of(fact) == name}
        return {node: value for fact in found for node, value in self.facts(fact).items()}

    def connected_facts(self, fact: type[T]) -> dict[str, T]:
        """Return a fact by node name, of the connected nodes that have it: what a question may be made of."""
        held, connected = self.facts(fact), {node.name for node in self.connected}
        return {name: value for name, value in held.items() if name in connected}

    def only(self, names: Collection[str]) -> Cluster:
        """Return these nodes alone, with all that is known of them."""
        nodes = tuple([node for node in self.nodes if node.name in names])
        if len(nodes) == len(self.nodes):
            return self
        return replace(self, nodes=nodes, whole=self.whole and self.whole.only(names))

    def restricted(self, declared: Collection[FactType]) -> Cluster:
        """Return the nodes with these facts alone: what a check is shown. Nothing is copied."""
        return replace(self, known=_Hidden(), declared=frozenset(declared), whole=self)

    def subset(self, names: Collection[str]) -> Cluster:
        """Return these nodes as if the others had never been listed: facts lose what they hold about others."""
        kept = frozenset(names)
        listed = (name for name in self.names if name in kept)
        known = {name: {fact: _among(value, kept) for fact, value in self.known[name].items()} for name in listed}
        return replace(self.only(kept), known=known)


class _Hidden(Mapping[str, Facts]):
    """What a check must not read: what it declares, it finds at `cluster[node]` and `cluster.facts(Fact)`."""

    def __getitem__(self, name: str) -> Facts:
        raise UndeclaredReadError(f"the check reads all that is known of {name}, and declares only some of it")

    def __iter__(self) -> Iterator[str]:
        raise UndeclaredReadError("the check reads all that is known, and declares only some of it")

    def __len__(self) -> int:
        raise UndeclaredReadError("the check reads all that is known, and declares only some of it")


def _among(fact: object, names: frozenset[str]) -> object:
    return fact.among(names) if hasattr(fact, "among") else fact
