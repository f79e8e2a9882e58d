"""NCCL would listen on an address that other nodes cannot route to

## What it finds
Nodes whose kernel has no route to the address that NCCL would pick on another node: the nodes pick different subnets,
and no router connects the two.

## Why it matters
Every rank connects to the addresses that NCCL picked on the others. Without a route the job stops or hangs before its
first step.

## What to type
`ncheck plan nodes.txt` prints the command that starts the job with the right variable. By hand, with the second "=" for
an exact name: `mpirun -x NCCL_SOCKET_IFNAME==eth0` (an exported variable alone does not reach the ranks of mpirun), or
the line `NCCL_SOCKET_IFNAME==eth0` in ~/.nccl.conf. `ip -br address` shows which interface is in which network.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, PLAN, Cluster, Inconclusive, Problem, Severity, Unread, cluster_check, fold
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.routes import RouteFacts, unroutable
from ncheck.nccl.choice import PICK_FACTS, picked_addresses
from ncheck.network.subnets import machines, shared


@cluster_check(
    "NC325",
    Severity.ERROR,
    NicFacts,
    EnvironmentFacts,
    also=(*PICK_FACTS, IdentityFacts, RouteFacts),
    mended_by="NCCL_SOCKET_IFNAME",
)
def nccl_picks_unroutable(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    everywhere = shared(machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts)))
    for node in cluster:
        if isinstance(why := node.maybe(RouteFacts), Unread):
            yield Inconclusive(why.reason, (node.name,))
    lost = unroutable(cluster.facts(RouteFacts))
    for name, pick in picked_addresses(cluster).items():
        if without_route := lost.get(pick.ip):
            address = f"{pick.ip} ({pick.interface.name})"
            message = f"NCCL on {name} would listen on {address}: {fold(without_route)} has no route to it"
            evidence = tuple(f"{node}: {error}" for node, error in without_route.items())
            nodes, brief = (name, *without_route), "NCCL would pick an unroutable address"
            if everywhere:
                yield Problem(message, PLAN, evidence, nodes, where=HERE, summary=brief)
            else:
                route = f"ip route get {pick.ip}"
                yield Problem(message, route, evidence, nodes, where=fold(without_route), look=True, summary=brief)
