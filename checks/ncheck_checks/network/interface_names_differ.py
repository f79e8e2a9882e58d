"""Interfaces in one subnet have different names on different nodes

## What it finds
Subnets in which every node has an address, but no interface name is common to all nodes: eno1 on one, enp3s0 on
another.

## Why it matters
A single NCCL_SOCKET_IFNAME for all nodes then matches nothing, or the wrong interface, on some nodes. Horovod keeps
only names that all nodes have and stops with "Unable to find a set of common task-to-task communication interfaces".

## What to type
Do not set one name for all nodes. `ncheck plan nodes.txt --for nccl.conf` prints what each node needs. That may be
nothing, because NCCL may pick the right interface everywhere. Put a node's own line into /etc/nccl.conf, not into a
home directory that nodes may share. For MPI, give the subnet instead of names:
`mpirun --mca btl_tcp_if_include 10.1.0.0/24`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, PLAN, Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import common_names, shared


@cluster_check("NC302", Severity.WARNING, NicFacts)
def interface_names_differ(cluster: Cluster) -> Iterator[Problem]:
    for subnet, members in shared(cluster.facts(NicFacts)).items():
        parted = split({node: addresses[0].interface.name for node, addresses in members.items()})
        if parted and not common_names(members):
            message = f"interface names in {subnet} differ: {parted.summary()}"
            yield Problem(message, PLAN, nodes=parted.odd, where=HERE, look=True, summary="interface names differ")
