"""A container engine's bridge has the same address on several nodes

## What it finds
Bridges that only containers or virtual machines hang on (docker0, virbr0, br-... of a compose file) and that have
one and the same address on two nodes or more. Docker gives 172.17.0.1 to each, so this is usual.

## Why it matters
It does no harm as long as no job uses it. One that does reaches itself where it means another node: Open MPI without
`btl_tcp_if_include` tries that address too and hangs at the first large message, and Horovod takes docker0 for a
network that all nodes share. The plan keeps MPI, NCCL and gloo off such bridges: its lines need nothing more.

## What to type
`ncheck plan nodes.txt` proposes the interface to name; `ip -br address` on a node shows the bridge.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold
from ncheck.network.subnets import machines, shared_bridges


@cluster_check("NC356", Severity.INFO, NicFacts, also=(IdentityFacts,))
def bridge_address_shared(cluster: Cluster) -> Iterator[Problem]:
    known = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    if found := shared_bridges(known):
        nodes = tuple(dict.fromkeys(node for held in found.values() for node in held))
        told = ", ".join(f"{name} has {ip}" for name, ip in list(found)[:3])
        yield Problem(
            message=f"bridges of containers have one address on several nodes, and no job may use them: {told}",
            fix="ip -br address",
            evidence=tuple(f"{name} has {ip} on {fold(held)}" for (name, ip), held in found.items()),
            nodes=nodes,
        )
