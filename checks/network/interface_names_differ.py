"""Interfaces of one subnet are not called the same on every node

## What it finds
Subnets in which every node has an address, and no interface name that all nodes use for it: eno1 here, enp3s0 there.

## Why it matters
One NCCL_SOCKET_IFNAME for all nodes then picks nothing, or the wrong interface, on some. Horovod keeps only names
that all nodes have and stops with "Unable to find a set of common task-to-task communication interfaces".

## What to type
`ip -br address` tells the name on each node; give each its own, in a file of the machine and not of a home that the
nodes may share: `echo NCCL_SOCKET_IFNAME==enp3s0 | sudo tee -a /etc/nccl.conf`.
MPI takes the subnet instead of names: `mpirun --mca btl_tcp_if_include 10.1.0.0/24`.
"""

from __future__ import annotations

from collections.abc import Iterator

from doctor import ClusterView, Problem, Severity, cluster_check, split
from doctor.model.facts import NicFacts
from doctor.reasoning.subnets import common_names, shared


@cluster_check("NC302", Severity.WARNING, NicFacts)
def interface_names_differ(cluster: ClusterView) -> Iterator[Problem]:
    for subnet, members in shared(cluster.each(NicFacts)).items():
        parted = split({node: seats[0].interface.name for node, seats in members.items()})
        if parted and not common_names(members):
            name = f"$(ip -br address show to {subnet} | sed 's/[@ ].*//;q')"  # each node's own, whatever it is called
            fix = f"echo NCCL_SOCKET_IFNAME=={name} | sudo tee -a /etc/nccl.conf"
            yield Problem(f"interfaces in {subnet} differ in name: {parted.told()}", fix, nodes=parted.odd)
