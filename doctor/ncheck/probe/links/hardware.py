"""The facts about a node's links, from which the expected bandwidth is computed."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.pcie import PcieFacts
from ncheck.facts.topology import TopologyFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import Cluster

# What a check of bandwidths declares besides the measurements.
HARDWARE_FACTS = (GpuFacts, TopologyFacts, PcieFacts, InfinibandFacts, NicFacts, EnvironmentFacts, GpuHealthFacts)


@dataclass(frozen=True)
class NodeHardware:
    """One node; None for facts that could not be read."""

    gpus: GpuFacts | None = None
    topology: TopologyFacts | None = None
    pcie: PcieFacts | None = None
    infiniband: InfinibandFacts | None = None
    nics: NicFacts | None = None
    environment: EnvironmentFacts | None = None
    health: GpuHealthFacts | None = None


def hardware_of(facts: Mapping[type[object], object]) -> NodeHardware:
    """Return a node's hardware from its facts by type; Unread, Absent and missing facts become None."""

    def known(fact: type[object]) -> object | None:
        value = facts.get(fact)
        return value if isinstance(value, fact) else None

    return NodeHardware(*map(known, HARDWARE_FACTS))  # type: ignore[arg-type]  # in the order of the fields


def kinds_of(gpus: Mapping[str, GpuFacts | None]) -> dict[str, str]:
    """Return the GPU models of each node: unlike nodes are not compared. A node whose GPUs could not be read is of the
    only kind there is, if there is one, as for checks.
    """
    models = {node: " + ".join(own.models) for node, own in gpus.items() if own}
    only = min(models.values()) if len({*models.values()}) == 1 else ""
    return {node: models.get(node, only) for node in gpus}


def hardware_in(cluster: Cluster) -> dict[str, NodeHardware]:
    """Return the hardware by node, for a check that declares HARDWARE_FACTS."""
    return {node.name: hardware_of({fact: node.maybe(fact) for fact in HARDWARE_FACTS}) for node in cluster}
