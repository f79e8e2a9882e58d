"""A container bridge has the same address on several nodes

## What it finds
Bridges that only connect containers or virtual machines (docker0, virbr0, br-... of a compose file) and that have the
same address on two or more nodes. This is usual: Docker gives 172.17.0.1 to every docker0.

## Why it matters
It does no harm unless a job uses the bridge. A job that does connects to itself instead of another node: without
`btl_tcp_if_include`, Open MPI also tries that address and hangs at the first large message, and Horovod considers
docker0 a network that all nodes share. The launch plan keeps MPI, NCCL and gloo off such bridges, which is enough.

## What to type
`ncheck plan nodes.txt` proposes the interface to use; `ip -br address` on a node shows the bridge.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check, fold
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import machines, shared_bridges


@cluster_check("NC356", Severity.INFO, NicFacts, also=(IdentityFacts,))
def bridge_address_shared(cluster: Cluster) -> Iterator[Problem]:
    known = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    if found := shared_bridges(known):
        nodes = tuple(dict.fromkeys(node for owners in found.values() for node in owners))
        first = ", ".join(f"{name} has {ip}" for name, ip in list(found)[:3])
        yield Problem(
            message=f"container bridges have the same address on several nodes; no job may use them: {first}",
            fix="ip -br address",
            evidence=tuple(f"{name} has {ip} on {fold(owners)}" for (name, ip), owners in found.items()),
            nodes=nodes,
            look=True,
        )
