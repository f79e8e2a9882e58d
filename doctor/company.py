"""The nodes of a run, as an act that needs several of them sees them: who was reached, and what is known by now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from doctor.engine import Facts
from doctor.model.facts import LoginFacts
from doctor.model.node import Node
from doctor.settings import Settings

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
