"""Who differs from whom, by majority and with no golden file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from doctor.hostlist import fold

V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True)
class Split(Generic[V]):
    """Nodes that do not agree. `groups` are the values with their nodes, the largest group first.

    `majority` is the value that more than half of the nodes have; None on a tie, where no side is to blame.
    """

    groups: tuple[tuple[V, tuple[str, ...]], ...]

    @property
    def majority(self) -> V | None:
        """Return the value of more than half of all nodes, or None."""
        value, nodes = self.groups[0]
        return value if 2 * len(nodes) > sum(len(members) for _, members in self.groups) else None

    @property
    def odd(self) -> tuple[str, ...]:
        """Return the nodes outside the majority; without one, every node."""
        groups = self.groups if self.majority is None else self.groups[1:]
        return tuple(node for _, nodes in groups for node in nodes)

    @property
    def wanted(self) -> V:
        """Return the value to come to: the majority's, or on a tie the first side's."""
        return self.groups[0][0]

    def told(self) -> str:
        """Say who has what: "2.18.3 on node[01-03], 2.21.5 on node04 (3 to 1)"."""
        sides = ", ".join(f"{value} on {fold(nodes)}" for value, nodes in self.groups)
        return f"{sides} ({' to '.join(str(len(nodes)) for _, nodes in self.groups)})"


def split(values: Mapping[str, V]) -> Split[V] | None:
    """Return how the nodes' values part, or None where all agree (or there are none)."""
    groups: dict[V, list[str]] = {}
    for node, value in values.items():
        groups.setdefault(value, []).append(node)
    if len(groups) < 2:  # noqa: PLR2004  it takes two to differ
        return None
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return Split(tuple((value, tuple(nodes)) for value, nodes in ordered))
