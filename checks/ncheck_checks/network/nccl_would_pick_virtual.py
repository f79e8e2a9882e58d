"""NCCL would pick an interface that leads nowhere

## What it finds
Nodes on which NCCL ends at lo, a container engine's bridge, a tunnel, the management controller's USB card, an
interface without a link, an address that is only link-local or that other nodes show, too, or at none at all. The NCCL
that the job loads is asked itself: ncclGetUniqueId names the address, and needs no GPU. Where there is none to ask, its
rules tell, from names, addresses, NCCL_* variables, nccl.conf and its release; where that is not known, a node is named
only if old and new rules agree.
`NCCL_SOCKET_IFNAME=^docker0` is a frequent cause: it takes lo off NCCL's list of names to avoid.

## Why it matters
The address of that interface is handed to all other ranks, and none can reach it: the job hangs before its first
step.

## What to type
`export NCCL_SOCKET_IFNAME='=eth0'`, the second "=" for an exact name, or `NCCL_SOCKET_IFNAME==eth0` in ~/.nccl.conf.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, NodeView, Problem, Severity, Unread, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nccl_pick import NcclPickFacts
from ncheck.facts.nics import NicFacts
from ncheck.nccl.choice import choices
from ncheck.network.best_addresses import ADDRESS_FACTS, best_addresses
from ncheck.network.subnets import SubnetAddress, subnet_addresses
from ncheck.text import export


@cluster_check(
    "NC304", Severity.ERROR, NicFacts, EnvironmentFacts, also=(LoadedNcclFacts, NcclPickFacts, *ADDRESS_FACTS)
)
def nccl_would_pick_virtual(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    best = best_addresses(cluster)
    for node in cluster:
        yield from _judged(node, best[node.name])


def _judged(node: NodeView, held: tuple[SubnetAddress, ...]) -> Iterator[Problem | Inconclusive]:
    nics, nccl, answer, name = node[NicFacts], node.maybe(LoadedNcclFacts), node.maybe(NcclPickFacts), (node.name,)
    found = choices(nics, node[EnvironmentFacts], nccl, answer)
    good = {(seat.interface.name, seat.ip) for seat in held or subnet_addresses(nics)}
    if found[0].stray:
        yield Inconclusive(f"NCCL picks {found[0].stray}, and no interface here was seen to have that address", name)
    elif not any(choice.where in good for choice in found):
        fixes = (*(export("NCCL_SOCKET_IFNAME", f"={seat.interface.name}") for seat in held), "ip -br address")
        ip = found[-1].where[1]
        twice = (
            f"; other nodes show that address too, {ip}"
            if any(seat.ip == ip for seat in subnet_addresses(nics))
            else ""
        )
        yield Problem(f"NCCL would {found[-1].told}{twice}", fixes[0], found[-1].answer, name)
    elif isinstance(nccl, Unread) and not all(choice.where in good for choice in found):
        yield Inconclusive(
            f"NCCL before 2.28.3 would pick {found[0].name}, and its release is not known: {nccl.reason}", name
        )
    elif isinstance(answer, Unread):
        yield Inconclusive(
            f"by its rules NCCL would pick {found[-1].name}, and it did not say so: {answer.reason}", name
        )
