"""NCCL would pick different subnets on different nodes

## What it finds
Clusters whose nodes share a subnet, but where NCCL picks an address in one subnet on some nodes and in another subnet
on others. ncheck asks NCCL itself or applies its rules. All these interfaces are usable; nccl-would-pick-virtual
reports those that are not. The kernel's order decides, and it differs if drivers were loaded in another order or one
node has an extra card.

## Why it matters
Each rank connects to the addresses that NCCL picked on the others. Without a route between the two subnets, the job
hangs before its first step. With a route, data takes an unintended path, such as the management network.

## What to type
`ncheck plan nodes.txt` prints the command that starts the job with the right variable. By hand, with the second "=" for
an exact name: `mpirun -x NCCL_SOCKET_IFNAME==eth0` (an exported variable alone does not reach the ranks of mpirun), or
the line `NCCL_SOCKET_IFNAME==eth0` in ~/.nccl.conf. `ip -br address` shows which interface is in which network.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, PLAN, Cluster, Problem, Severity, cluster_check, fold, nodes_by_value, split
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.nccl.choice import PICK_FACTS, picked_addresses
from ncheck.network.subnets import machines, shared


@cluster_check(
    "NC320",
    Severity.WARNING,
    NicFacts,
    EnvironmentFacts,
    also=(*PICK_FACTS, IdentityFacts),
    mended_by="NCCL_SOCKET_IFNAME",
)
def nccl_picks_differ(cluster: Cluster) -> Iterator[Problem]:
    nodes = machines(cluster.facts(NicFacts), cluster.facts(IdentityFacts))
    picks = picked_addresses(node for node in cluster if node.name in nodes)
    parted = split({name: pick.subnet for name, pick in picks.items()})
    if parted and shared(nodes):
        choices = {node: f"{pick.interface.name} is in {pick.subnet}" for node, pick in picks.items()}
        evidence = tuple(f"{choice}: {fold(members)}" for choice, members in nodes_by_value(choices).items())
        message = f"NCCL would pick different subnets: {parted.summary()}"
        yield Problem(message, PLAN, evidence, parted.odd, where=HERE, summary="NCCL would pick different subnets")
