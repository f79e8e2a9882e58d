"""What a node's links are, of the facts that tell of them: what the expectation is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.pcie import PcieFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.model.cluster import Cluster

# What a check of bandwidths declares, besides what was measured.
HARDWARE_FACTS = (GpuFacts, TopologyFacts, PcieFacts, InfinibandFacts, NicFacts, EnvironmentFacts)


@dataclass(frozen=True)
class Hardware:
    """One node; None is what could not be had."""

    gpus: GpuFacts | None = None
    topology: TopologyFacts | None = None
    pcie: PcieFacts | None = None
    infiniband: InfinibandFacts | None = None
    nics: NicFacts | None = None
    environment: EnvironmentFacts | None = None


def hardware_of(facts: Mapping[type[object], object]) -> Hardware:
    """Return a node's hardware of its facts by type; what is Unread, Absent or not there is None."""

    def held(fact: type[object]) -> object | None:
        value = facts.get(fact)
        return value if isinstance(value, fact) else None

    gpus, topology, pcie, infiniband, nics, environment = map(held, HARDWARE_FACTS)
    return Hardware(gpus, topology, pcie, infiniband, nics, environment)  # type: ignore[arg-type]


def hardware_in(cluster: Cluster) -> dict[str, Hardware]:
    """Return the same by node, for a check that declares HARDWARE_FACTS beside what it reads."""
    return {node.name: hardware_of({fact: node.maybe(fact) for fact in HARDWARE_FACTS}) for node in cluster}
