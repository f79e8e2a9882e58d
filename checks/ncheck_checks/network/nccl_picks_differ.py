"""NCCL would pick one subnet on some nodes and another one on the rest

## What it finds
Clusters whose nodes share a subnet, and in which NCCL, asked itself or by its rules, picks an address in one subnet
here and in another one there. Each interface is a real one: for those that lead nowhere see nccl-would-pick-virtual.
The kernel's order decides, and it differs where drivers were loaded in another order or one node has a card more.

## Why it matters
Each rank is told to call the others where NCCL picked. Without a way between the two subnets the job hangs before its
first step; with one, data takes a way that nobody meant, such as the management network.

## What to type
`export NCCL_SOCKET_IFNAME='=eth0'` on all nodes, with the name that leads into one and the same subnet;
`ncheck plan nodes.txt --for env` names it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check, split
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.links import LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.hostlist import fold
from ncheck.nccl.picks import MADE_OF, line_into, picked_addresses
from ncheck.network.link_faults import carrying
from ncheck.network.subnets import machines, shared
from ncheck.parity import gathered


@cluster_check("NC320", Severity.WARNING, NicFacts, EnvironmentFacts, also=(*MADE_OF, IdentityFacts, LinkFacts))
def nccl_picks_differ(cluster: Cluster) -> Iterator[Problem]:
    nodes = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    picks = picked_addresses(node for node in cluster if node.name in nodes)
    parted, everywhere = split({name: seat.subnet for name, seat in picks.items()}), shared(nodes)
    if parted and everywhere:
        whole = next(iter(carrying(cluster.facts(LinkFacts), nodes)), "")
        lines = gathered({node: f"{seat.interface.name} leads into {seat.subnet}" for node, seat in picks.items()})
        evidence = tuple(f"{line}: {fold(members)}" for line, members in lines.items())
        told = f"NCCL would pick different subnets: {parted.told()}"
        yield Problem(told, line_into(everywhere, whole), evidence, parted.odd)
