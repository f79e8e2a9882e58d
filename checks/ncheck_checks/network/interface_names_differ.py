"""Interfaces of one subnet are not called the same on every node

## What it finds
Subnets in which every node has an address, and no interface name that all nodes use for it: eno1 here, enp3s0 there.

## Why it matters
One NCCL_SOCKET_IFNAME for all nodes then picks nothing, or the wrong interface, on some. Horovod keeps only names
that all nodes have and stops with "Unable to find a set of common task-to-task communication interfaces".

## What to type
Name no interface for all nodes. `ncheck plan nodes.txt --for nccl.conf` prints what each node needs, which may be
nothing: unset, NCCL may pick the right one everywhere. A node's own line belongs into /etc/nccl.conf, not into a home
that nodes may share. MPI takes the subnet in place of names: `mpirun --mca btl_tcp_if_include 10.1.0.0/24`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import common_names, shared


@cluster_check("NC302", Severity.WARNING, NicFacts)
def interface_names_differ(cluster: Cluster) -> Iterator[Problem]:
    for subnet, members in shared(cluster.facts(NicFacts)).items():
        parted = split({node: seats[0].interface.name for node, seats in members.items()})
        if parted and not common_names(members):
            told = f"interfaces in {subnet} differ in name: {parted.told()}"
            yield Problem(told, "ncheck plan nodes.txt --for nccl.conf", nodes=parted.odd)
