"""What a node's links are, of the facts that tell of them: what the expectation is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.model.facts import EnvironmentFacts, GpuFacts, InfinibandFacts, NicFacts, TopologyFacts

HARDWARE_FACTS = (GpuFacts, TopologyFacts, InfinibandFacts, NicFacts, EnvironmentFacts)


@dataclass(frozen=True)
class Hardware:
    """One node; None is what could not be had."""

    gpus: GpuFacts | None = None
    topology: TopologyFacts | None = None
    infiniband: InfinibandFacts | None = None
    nics: NicFacts | None = None
    environment: EnvironmentFacts | None = None


def hardware_of(facts: Mapping[type[object], object]) -> Hardware:
    """Return a node's hardware of its facts by type; what is Unread, Absent or not there is None."""
    raise NotImplementedError
