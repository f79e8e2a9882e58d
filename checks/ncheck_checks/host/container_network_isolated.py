"""A container has a network of its own that no other node reaches

## What it finds
Nodes that are containers with a private network (their only interface is one end of a veth pair, such as eth0) and
from which no other node can be reached, if that interface has an address of Docker's own (172.16.0.0/12) or one that
another node has too. Containers whose network leads to the other nodes, such as pods on Kubernetes, are not reported.

## Why it matters
NCCL, gloo and MPI tell the other ranks the address of eth0, which exists on every machine that runs Docker. The job
hangs while ranks connect, or connects to the wrong machine. Published ports do not help: a job uses any port.

## What to type
Start the container with the network of its machine: `docker run --network=host --ipc=host`. On Kubernetes,
`hostNetwork: true`, or a network plug-in that routes between nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, Unread, cluster_check
from ncheck.facts.links import LinkCause, LinkFacts
from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import machines, same_uplinks, uplink_addresses

DOCKER = ip_network("172.16.0.0/12")


@cluster_check("NC627", Severity.ERROR, NicFacts, also=(LinkFacts, IdentityFacts))
def container_network_isolated(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    nics = cluster.facts(NicFacts)
    alike = same_uplinks(machines(nics, cluster.facts(IdentityFacts)))
    for node in cluster:
        addresses, links = uplink_addresses(nics[node.name]), node.maybe(LinkFacts)
        if not addresses:
            yield NotApplicable("it has the network of its machine", (node.name,))
        elif isinstance(links, LinkFacts):
            tried = any(link.cause is not LinkCause.UNTRIED for link in links.broken)
            private = node.name in alike or (tried and any(ip_address(ip) in DOCKER for ip in addresses))
            if private and not any(reach.reached for reach in links.reaches):
                yield _isolated(node.name, addresses[0])
        elif node.name in alike:  # no link was tried: nobody listens on an address that others have, too
            yield _isolated(node.name, addresses[0])
        elif isinstance(links, Unread):
            yield Inconclusive(links.reason, (node.name,))
        else:
            yield NotApplicable(links.reason, (node.name,))


def _isolated(node: str, address: str) -> Problem:
    return Problem(
        f"{node} is a container with a network of its own ({address}), and reaches no other node",
        "start the container again with --network=host --ipc=host",
        nodes=(node,),
        do=True,
        summary="a container's network reaches no other node",
    )
