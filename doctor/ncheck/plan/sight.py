"""What a plan is made of: the listed nodes and their facts, sorted into what is known and what is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.node import Node
from ncheck.topology.gpus import visible_gpus

T = TypeVar("T")


@dataclass(frozen=True)
class Sight:
    """The nodes as listed and as seen."""

    nodes: tuple[Node, ...]
    facts: Mapping[str, Facts]

    @cached_property
    def reached(self) -> tuple[str, ...]:
        """The nodes that were logged in to."""
        return tuple(node.name for node in self.nodes if self._login(node.name))

    @cached_property
    def unreached(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes if not self._login(node.name))

    def known(self, fact: type[T]) -> dict[str, T]:
        """Return the fact of every reached node that has it."""
        held = {name: self.facts[name].get(fact) for name in self.reached}
        return {name: value for name, value in held.items() if isinstance(value, fact)}

    def unread(self, fact: type[T]) -> dict[str, str]:
        """Return why the fact could not be read on nodes that were reached."""
        held = {name: self.facts[name].get(fact) for name in self.reached}
        return {name: value.reason for name, value in held.items() if isinstance(value, Unread)}

    def why_not(self, fact: type[T]) -> str:
        """Say why no node has the fact, in the words of the first that does."""
        held = (self.facts[name].get(fact) for name in self.reached)
        return next((value.reason for value in held if isinstance(value, (Unread, Absent))), "it was not asked for")

    @property
    def ifname(self) -> str | None:
        """The interface that the user named for the job, None where he left it open."""
        return next((job.ifname for job in self.known(JobFacts).values()), None)

    @property
    def rdma(self) -> bool:
        """Tell whether every reached node has an Active HCA port, so that TCP carries only the ranks' first meeting."""
        ports = self.known(InfinibandFacts)
        active = [name for name, held in ports.items() if any(port.state == "Active" for port in held.ports)]
        return len(active) == len(self.reached)

    @cached_property
    def environments(self) -> dict[str, EnvironmentFacts]:
        """The environment of every reached node; where it could not be read, it is taken to set nothing."""
        known, unset = self.known(EnvironmentFacts), EnvironmentFacts({}, {})
        return {name: known.get(name, unset) for name in self.reached}

    @cached_property
    def gpus(self) -> dict[str, int]:
        """The number of GPUs that each node shows to a job, where that is known."""
        held = self.known(GpuFacts)
        seen = {name: visible_gpus(gpus, self.environments[name]) for name, gpus in held.items()}
        return {name: len(held[name].gpus) if count is None else count for name, count in seen.items()}

    def slots(self, otherwise: int | None = None) -> dict[str, int]:
        """Return slots by node: as listed, else one a GPU, else `otherwise`, else one.

        A node whose GPUs are not known is like most, unless `otherwise` says what it has.
        """
        counts = list(self.gpus.values())
        usual = max(set(counts), key=counts.count) if counts else 1
        unknown = {*self.unreached, *self.unread(GpuFacts)}
        return {
            node.name: node.slots
            or self.gpus.get(node.name)
            or otherwise
            or (usual if node.name in unknown else 0)
            or 1
            for node in self.nodes
        }

    def _login(self, name: str) -> bool:
        login = self.facts.get(name, {}).get(LoginFacts)
        return isinstance(login, LoginFacts) and login.login.reached


def sight_of(nodes: Sequence[Node], facts: Mapping[str, Facts]) -> Sight:
    """Return the sight; a node that is listed twice counts once."""
    return Sight(tuple({node.name: node for node in nodes}.values()), facts)
