"""What the probe stands on: who takes part, with how many ranks, in which network and by which devices."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.nccl.hca import selected
from ncheck.nccl.settings import LINK_STATE_COUNTS, settings_in_force
from ncheck.plan.hca import HCA
from ncheck.plan.inputs import gpu_counts, rdma_everywhere, slots_per_node
from ncheck.probe.methods.method import Ground

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.plan import LaunchPlan
    from ncheck.settings import Settings


# Data goes by sockets although there are HCAs, where somebody has set one of these.
IB_DISABLE, NET = "NCCL_IB_DISABLE", "NCCL_NET"


def ground_of(cluster: Cluster, settings: Settings, plan: LaunchPlan, dropped: Collection[str]) -> Ground:
    """Return the ground of those reached nodes that were not left out."""
    from ncheck.plan.variables import advise

    names = tuple(node.name for node in cluster.connected if node.name not in dropped)
    taking_part = cluster.subset(names)
    network = advise(taking_part).network if len(names) > 1 else None
    bare = Ground(cluster, settings, plan, names, {}, {}, network, {})
    rdma = bool(names) and rdma_everywhere(taking_part) and not any(_by_sockets(bare, node) for node in names)
    gpus = gpu_counts(taking_part)
    return Ground(
        cluster, settings, plan, names,
        slots=slots_per_node(taking_part, settings.slots),
        gpus={name: gpus.get(name, 0) for name in names},
        network=network,
        planned={name: _planned(bare, taking_part, name, rdma=rdma) for name in names},
        rdma=rdma,
    )  # fmt: skip


def set_there(ground: Ground, node: str) -> dict[str, str]:
    """Return NCCL's variables as the ranks on a node would have them: the plan's outweigh those that are there."""
    held = ground.cluster.known.get(node, {}).get(EnvironmentFacts)
    own = settings_in_force(held, LINK_STATE_COUNTS) if isinstance(held, EnvironmentFacts) else {}
    return {**own, **ground.variables(node)}


def _by_sockets(ground: Ground, node: str) -> bool:
    found = set_there(ground, node)
    return found.get(IB_DISABLE, "0") not in ("", "0") or found.get(NET, "").lower() == "socket"


def _planned(ground: Ground, cluster: Cluster, node: str, *, rdma: bool) -> tuple[str, ...]:
    """Return the HCA ports that NCCL takes under the plan, and the interfaces that lead into the plan's network.

    By the latter the ranks meet first, also where all data goes by HCAs.
    """
    ports = cluster.facts(InfinibandFacts).get(node) if rdma else None
    used = selected(set_there(ground, node).get(HCA, ""), ports.ports) if ports else ()
    return (*(port.name for port in used), *_interfaces(ground, node))


def _interfaces(ground: Ground, node: str) -> tuple[str, ...]:
    """Return the node's interfaces in the network, those of them that NCCL_SOCKET_IFNAME names exactly."""
    held = ground.network.members.get(node, ()) if ground.network else ()
    value = ground.variables(node).get("NCCL_SOCKET_IFNAME", "")
    named = value.removeprefix("=").split(",") if value.startswith("=") else None
    names = dict.fromkeys(seat.interface.name for seat in held)
    return tuple(name for name in names if named is None or name in named)
