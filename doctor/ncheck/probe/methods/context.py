"""What all drivers of the probe need to know: the nodes, their ranks, the network and the planned devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.nccl.hca import selected
from ncheck.nccl.settings import LINK_STATE_COUNTS, settings_in_force
from ncheck.plan.hca import HCA
from ncheck.plan.inputs import gpu_counts, rdma_everywhere, slots_per_node
from ncheck.probe.facts import MeetingFacts

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.plan import LaunchPlan
    from ncheck.plan.networks import Network
    from ncheck.settings import Settings


# Either of these can send the data through sockets on nodes that have HCAs.
IB_DISABLE, NET = "NCCL_IB_DISABLE", "NCCL_NET"


@dataclass(frozen=True)
class ProbeContext:
    """The same for the whole run, except for `cluster`.

    nodes    those that take part, in the order of the inventory
    slots    ranks of the job on each node
    gpus     GPUs that each node shows to the job, 0 for none
    network  the network of the plan's TCP traffic; None for a single node, and where none could be chosen
    planned  per node, the interfaces ("eth0") and HCA ports ("mlx5_0:1") that the plan wants the data to use
    rdma     data goes through the HCAs
    """

    cluster: Cluster
    settings: Settings
    plan: LaunchPlan
    nodes: tuple[str, ...]
    slots: Mapping[str, int]
    gpus: Mapping[str, int]
    network: Network | None
    planned: Mapping[str, tuple[str, ...]]
    rdma: bool = False

    def variables(self, node: str) -> dict[str, str]:
        """Return the variables that the plan sets on this node."""
        settings = {**self.plan.env, **self.plan.per_node.get(node, {})}
        return {name: setting.value for name, setting in settings.items() if setting.value is not None}

    def address(self, node: str) -> str:
        """Return the node's own address in the plan's network, "" if it has none."""
        addresses = self.network.members.get(node, ()) if self.network else ()
        return addresses[0].ip if addresses else ""

    def meeting(self, node: str) -> MeetingFacts | None:
        """Return the node's meeting point for ranks; None if it was not asked for one or did not answer."""
        facts = self.cluster.known.get(node, {}).get(MeetingFacts)
        return facts if isinstance(facts, MeetingFacts) else None


def context_of(cluster: Cluster, settings: Settings, plan: LaunchPlan, dropped: Collection[str]) -> ProbeContext:
    """Return the context of the connected nodes, without the `dropped` ones."""
    from ncheck.plan.variables import advise

    names = tuple(node.name for node in cluster.connected if node.name not in dropped)
    taking_part = cluster.subset(names)
    network = advise(taking_part).network if len(names) > 1 else None
    bare = ProbeContext(cluster, settings, plan, names, {}, {}, network, {})
    rdma = bool(names) and rdma_everywhere(taking_part) and not any(_uses_sockets(bare, node) for node in names)
    gpus = gpu_counts(taking_part)
    return ProbeContext(
        cluster, settings, plan, names,
        slots=slots_per_node(taking_part, settings.slots),
        gpus={name: gpus.get(name, 0) for name in names},
        network=network,
        planned={name: _planned(bare, taking_part, name, rdma=rdma) for name in names},
        rdma=rdma,
    )  # fmt: skip


def nccl_variables(context: ProbeContext, node: str) -> dict[str, str]:
    """Return NCCL's variables as ranks on this node get them: the plan's values override the node's own."""
    facts = context.cluster.known.get(node, {}).get(EnvironmentFacts)
    own = settings_in_force(facts, LINK_STATE_COUNTS) if isinstance(facts, EnvironmentFacts) else {}
    return {**own, **context.variables(node)}


def _uses_sockets(context: ProbeContext, node: str) -> bool:
    variables = nccl_variables(context, node)
    return variables.get(IB_DISABLE, "0") not in ("", "0") or variables.get(NET, "").lower() == "socket"


def _planned(context: ProbeContext, cluster: Cluster, node: str, *, rdma: bool) -> tuple[str, ...]:
    """Return the HCA ports that NCCL uses under the plan, and the interfaces in the plan's network.

    The ranks meet through the interfaces even where all data goes through HCAs.
    """
    ports = cluster.facts(InfinibandFacts).get(node) if rdma else None
    used = selected(nccl_variables(context, node).get(HCA, ""), ports.ports) if ports else ()
    return (*(port.name for port in used), *_interfaces(context, node))


def _interfaces(context: ProbeContext, node: str) -> tuple[str, ...]:
    """Return the node's interfaces in the network; if NCCL_SOCKET_IFNAME gives exact names, only those."""
    addresses = context.network.members.get(node, ()) if context.network else ()
    value = context.variables(node).get("NCCL_SOCKET_IFNAME", "")
    exact = value.removeprefix("=").split(",") if value.startswith("=") else None
    names = dict.fromkeys(address.interface.name for address in addresses)
    return tuple(name for name in names if exact is None or name in exact)
