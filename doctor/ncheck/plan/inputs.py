"""What a plan is computed from: facts about the nodes that were logged in to, and the size of the job on each node."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.login import LoginFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Cluster, FactType
from ncheck.model.fact import Absent, Unread
from ncheck.nccl.hca import active
from ncheck.topology.gpus import visible_gpus


def each_node_once(cluster: Cluster) -> Cluster:
    """Return the cluster; a node that is listed twice counts once."""
    return replace(cluster, nodes=tuple({node.name: node for node in cluster.nodes}.values()))


def logged_in(cluster: Cluster) -> Cluster:
    """Return the nodes that ncheck logged in to, each once. Their connection may have failed later."""
    reached = {name for name, facts in cluster.facts(LoginFacts).items() if facts.login.reached}
    return each_node_once(cluster).only(reached)


def unreachable(cluster: Cluster) -> tuple[str, ...]:
    """Return the nodes that ncheck could not log in to."""
    reached = set(logged_in(cluster).names)
    return tuple(node for node in each_node_once(cluster).names if node not in reached)


def unread_reasons(cluster: Cluster, fact: FactType) -> dict[str, str]:
    """Return why a fact could not be read, by node."""
    values = {name: cluster.known.get(name, {}).get(fact) for name in cluster.names}
    return {name: value.reason for name, value in values.items() if isinstance(value, Unread)}


def missing_reason(cluster: Cluster, fact: FactType) -> str:
    """Return the first node's reason why it has no such fact."""
    values = (cluster.known.get(name, {}).get(fact) for name in cluster.names)
    return next((value.reason for value in values if isinstance(value, (Unread, Absent))), "it was not asked for")


def requested_interface(cluster: Cluster) -> str | None:
    """Return the interface that the user requested for the job (--ifname); None if there is none."""
    return next((job.ifname for job in cluster.facts(JobFacts).values()), None)


def rdma_everywhere(cluster: Cluster) -> bool:
    """Return whether every node has an Active HCA port that NCCL itself can use, as it cannot EFA's. TCP then carries
    only the ranks' first connections.
    """
    ports = cluster.facts(InfinibandFacts)
    return sum(bool(active(facts.ports)) for facts in ports.values()) == len(cluster)


def environments(cluster: Cluster) -> dict[str, EnvironmentFacts]:
    """Return the environment of every node; one that could not be read is assumed to set no variable."""
    known, unset = cluster.facts(EnvironmentFacts), EnvironmentFacts({}, {})
    return {name: known.get(name, unset) for name in cluster.names}


def gpu_counts(cluster: Cluster) -> dict[str, int]:
    """Return how many GPUs a job sees on each node, where that is known."""
    own = environments(cluster)
    counts = {}
    for name, facts in cluster.facts(GpuFacts).items():
        visible = visible_gpus(facts, own[name])
        counts[name] = len(facts.gpus) if visible is None else visible
    return counts


def slots_per_node(cluster: Cluster, default: int | None) -> dict[str, int]:
    """Return the number of ranks on each listed node: the slots of the list, else its GPUs, else `default`, else 1.

    A node whose GPUs are unknown is assumed to have as many as most nodes, unless there is a `default`.
    """
    reached = logged_in(cluster)
    gpus = gpu_counts(reached)
    counts = list(gpus.values())
    usual = max(set(counts), key=counts.count) if counts else 1
    unknown = {*unreachable(cluster), *unread_reasons(reached, GpuFacts)}
    return {
        node.name: node.slots or gpus.get(node.name) or default or (usual if node.name in unknown else 0) or 1
        for node in each_node_once(cluster).nodes
    }
