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

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check, nodes_by_value
from ncheck.facts.links import LinkCause, LinkFacts
from ncheck.facts.nics import NicFacts

DOCKER = ip_network("172.16.0.0/12")


@cluster_check("NC627", Severity.ERROR, NicFacts, LinkFacts)
def container_network_isolated(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    links = cluster.facts(LinkFacts)
    uplinks: dict[str, tuple[str, ...]] = {}
    for node, nics in cluster.facts(NicFacts).items():
        own = [nic for nic in nics.interfaces if nic.uplink]
        uplinks[node] = tuple(address.ip for nic in own for address in nic.addresses if address.scope == "global")
    shared = {addresses for addresses, nodes in nodes_by_value(uplinks).items() if len(nodes) > 1}
    for node, addresses in uplinks.items():
        tried = any(link.cause is not LinkCause.UNTRIED for link in links[node].broken)
        private = addresses in shared or (tried and any(ip_address(ip) in DOCKER for ip in addresses))
        if not addresses:
            yield NotApplicable("it has the network of its machine", (node,))
        elif private and not any(reach.reached for reach in links[node].reaches):
            yield Problem(
                f"{node} is a container with a network of its own ({addresses[0]}), and reaches no other node",
                "docker run --network=host --ipc=host",
                nodes=(node,),
                summary="a container's network reaches no other node",
            )
