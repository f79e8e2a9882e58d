"""A node has a second IPv4 address on the interface that Open MPI uses

## What it finds
Nodes with several IPv4 addresses on one interface of the job's network, where Open MPI before 5 starts the job over
several nodes: an address that keepalived, kube-vip or MetalLB has put there, a /32 too, or one of another subnet. The
job's network is the fastest one that all nodes share.

## Why it matters
Open MPI's TCP makes its connections from the first address of an interface, and the other nodes know the last one
alone: "Open MPI dropped inbound connection ... from an IP address that is unexpected". The job hangs at the first
message that such a node begins. No parameter changes this: btl_tcp_if_include selects interfaces, not addresses (seen
with 4.1.4; issue 5818 of open-mpi/ompi). Programs that only take their ranks from mpirun and send nothing by MPI run.

## What to type
`ip -br address` shows the addresses of each interface. Move the second address to another interface or to a node that
runs no job. Or start the job without Open MPI's TCP: with torchrun, or with srun and another MPI.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import IdentityFacts
from ncheck.facts.mpi import MpiFacts
from ncheck.facts.nics import Interface, NicFacts
from ncheck.network.subnets import best_first, machines, shared


@cluster_check("NC237", Severity.ERROR, NicFacts, MpiFacts, also=(IdentityFacts,))
def mpi_second_address(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    for node, mpi in cluster.facts(MpiFacts).items():
        if mpi.implementation != "Open MPI" or mpi.release >= (5,):
            yield NotApplicable("only Open MPI before 5 has this trouble", (node,))
            return
    networks = best_first(shared(machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))))
    subnet = next(iter(networks), "")
    if ":" in subnet:
        return
    for node, addresses in networks.get(subnet, {}).items():
        for nic in dict.fromkeys(address.interface for address in addresses):
            if several := _by_ipv4(nic)[1:]:
                yield Problem(
                    f"{nic.name} has {' and '.join(_by_ipv4(nic))}: Open MPI connects from {_by_ipv4(nic)[0]}, other "
                    f"nodes know {several[-1]} alone and drop it, and the job hangs",
                    f"ip -br address show {quote(nic.name)}",
                    nodes=(node,), look=True, summary="Open MPI hangs with two addresses on an interface",
                )  # fmt: skip


def _by_ipv4(nic: Interface) -> list[str]:
    return [address.ip for address in nic.addresses if ":" not in address.ip]
