"""NCCL would use InfiniBand and Ethernet ports together

## What it finds
Nodes where NCCL would use both InfiniBand and RoCE ports, because NCCL_IB_HCA is not set, or names both, and the
Ethernet ports are as fast as the InfiniBand ones. Slower ones, which NCCL passes over, are not reported.

## Why it matters
NCCL takes every Active port. If it pairs an InfiniBand port of one node with an Ethernet port of another, the job stops
with "Attempted to connect incompatible devices" or "Got completion with error 12"; else part of the traffic runs over
the network that was meant for storage or management.

## What to type
`export NCCL_IB_HCA==mlx5_0:1,...` with the InfiniBand ports only ("=" makes names exact); the launch plan sets it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, PLAN, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.hca import nccl_value, selected


@node_check(
    "NC420", Severity.WARNING, InfinibandFacts, also=(EnvironmentFacts, LoadedNcclFacts), mended_by="NCCL_IB_HCA"
)
def link_layers_mixed(node: NodeView) -> Iterator[Problem | NotApplicable]:
    ports = selected(nccl_value(node, "NCCL_IB_HCA"), node[InfinibandFacts].ports)
    infiniband = [port for port in ports if port.link_layer == "InfiniBand"]
    ethernet = [port for port in ports if port.link_layer == "Ethernet"]
    if not ports:
        yield NotApplicable("no Active InfiniBand or RoCE port")
    elif infiniband and ethernet:
        fastest = max(port.rate or 0 for port in infiniband)
        rivals = [port.name for port in ethernet if (port.rate or 0) >= fastest]
        if rivals:
            names = ", ".join(port.name for port in infiniband)
            message = f"NCCL would use {', '.join(rivals)} (Ethernet) together with {names} (InfiniBand)"
            yield Problem(message, PLAN, where=HERE, summary="link layers are mixed")
