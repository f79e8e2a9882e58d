"""Which nodes differ from the majority. There is no reference file."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import wraps
from shlex import quote
from typing import Generic, TypeVar

from ncheck.hostlist import fold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import Check, Problem, cluster_check
from ncheck.model.cluster import Cluster
from ncheck.model.finding import Severity

V = TypeVar("V", bound=Hashable)
F = TypeVar("F")


@dataclass(frozen=True)
class Split(Generic[V]):
    """Nodes with different values. `groups`: each value with its nodes, the largest group first.

    `majority` is the value of more than half of the nodes, None if there is none: then no side is at fault.
    """

    groups: tuple[tuple[V, tuple[str, ...]], ...]

    @property
    def majority(self) -> V | None:
        """Return the value of more than half of all nodes, or None."""
        value, nodes = self.groups[0]
        return value if 2 * len(nodes) > sum(len(members) for _, members in self.groups) else None

    @property
    def odd(self) -> tuple[str, ...]:
        """Return the nodes outside the majority; without a majority, all nodes."""
        groups = self.groups if self.majority is None else self.groups[1:]
        return tuple(node for _, nodes in groups for node in nodes)

    @property
    def wanted(self) -> V:
        """Return the value that all nodes should have: the majority's or, in a tie, the first group's."""
        return self.groups[0][0]

    def summary(self) -> str:
        """List the values with their nodes: "2.18.3 on node[01-03], 2.21.5 on node04 (3 to 1)"."""
        sides = ", ".join(f"{value} on {fold(nodes)}" for value, nodes in self.groups)
        return f"{sides} ({' to '.join(str(len(nodes)) for _, nodes in self.groups)})"


def split(values: Mapping[str, V]) -> Split[V] | None:
    """Return how the nodes' values differ, or None if all are equal (or there are none)."""
    groups = nodes_by_value(values)
    if len(groups) < 2:  # noqa: PLR2004  at least two values
        return None
    return Split(tuple(sorted(groups.items(), key=lambda group: -len(group[1]))))


def nodes_by_value(values: Mapping[str, V]) -> dict[V, tuple[str, ...]]:
    """Return each value with the nodes that have it, in order of first occurrence."""
    groups: dict[V, list[str]] = {}
    for node, value in values.items():
        groups.setdefault(value, []).append(node)
    return {value: tuple(nodes) for value, nodes in groups.items()}


def parity_check(  # noqa: PLR0913  each is part of one declaration
    code: str,
    severity: Severity,
    fact: type[F],
    *,
    what: str,
    fix: str | Callable[[F], str],
    look: bool = False,
    shown: Callable[[F], str] | None = None,
    everywhere: bool = False,
    by_kind: bool = False,
) -> Callable[[Callable[[F], str | None]], Check]:
    """Make a check from a function that returns the value that must be equal on all nodes; None excludes a node.

    `code`: letters and digits, unique. `severity`: ERROR, WARNING or INFO. `fact`: what the function is given. `what`:
    how the message begins. `fix`: the line to type, or a function of the fact of the first node that differs; {wanted}
    in the line is replaced by the value that all nodes should have. `look`: the fix only shows more. `shown`: what
    makes a node's evidence of the fact. `everywhere` and `by_kind`: as for a cluster check.
    """

    def made(value_of: Callable[[F], str | None]) -> Check:
        @wraps(value_of)
        def judge(cluster: Cluster) -> Iterator[Problem]:
            facts = cluster.facts(fact)
            parted = split({node: value for node, own in facts.items() if (value := value_of(own)) is not None})
            if parted:
                evidence = on_nodes({node: shown(own) for node, own in facts.items()} if shown else {})
                line = fix if isinstance(fix, str) else fix(facts[parted.odd[0]])
                typed = line.format(wanted=quote(parted.wanted))
                yield Problem(f"{what}: {parted.summary()}", typed, evidence, parted.odd, look=look, summary=what)

        return cluster_check(code, severity, fact, everywhere=everywhere, by_kind=by_kind)(judge)

    return made


def on_nodes(shown: Mapping[str, str]) -> tuple[str, ...]:
    """Return the evidence of nodes, each line once with its nodes: "2.18.3 on node[01-03]"."""
    return tuple(f"{line} on {fold(nodes)}" for line, nodes in nodes_by_value(shown).items())
