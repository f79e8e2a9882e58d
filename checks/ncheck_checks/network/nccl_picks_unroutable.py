"""NCCL would wait where other nodes have no way to

## What it finds
Nodes whose kernel knows no route to the address that NCCL would pick on another node: the nodes pick different subnets,
and nothing joins the two.

## Why it matters
Every rank is told to call the others where NCCL picked. There is no way to that address, so the job ends, or hangs,
before its first step.

## What to type
`export NCCL_SOCKET_IFNAME='=eth0'` on all nodes, with the name that leads into one and the same subnet;
`ncheck plan nodes.txt --for env` names it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.routes import RouteFacts
from ncheck.hostlist import fold
from ncheck.model.fact import Unread
from ncheck.nccl.picks import MADE_OF, line_into, picked_addresses
from ncheck.network.subnets import machines, shared


@cluster_check("NC325", Severity.ERROR, NicFacts, EnvironmentFacts, also=(*MADE_OF, IdentityFacts, RouteFacts))
def nccl_picks_unroutable(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    everywhere = shared(machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts)))
    for node in cluster:
        if isinstance(why := node.maybe(RouteFacts), Unread):
            yield Inconclusive(why.reason, (node.name,))
    for name, seat in picked_addresses(cluster).items():
        told = {node: known.routes.get(seat.ip, "") for node, known in cluster.facts(RouteFacts).items()}
        cut = {node: why for node, why in told.items() if why}
        if cut:
            fix = line_into(everywhere, "") if everywhere else f"ip route get {seat.ip}"
            message = f"NCCL on {name} would wait at {seat.ip} ({seat.interface.name}): {fold(cut)} has no way there"
            yield Problem(message, fix, tuple(f"{node}: {why}" for node, why in cut.items()), (name, *cut))
