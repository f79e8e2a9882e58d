"""Ray knows a node by an address of the wrong interface

## What it finds
Nodes on which Ray runs as this user (a raylet) with a node address that is a loopback address, that of docker0 or
another container bridge, a name, or an address that the node does not have; and logins whose RAY_ADDRESS is a loopback
address on every node. If the address is good but on another network than the interface that NCCL picks, that is said
as information: it works, but objects of Ray then take that network.

Without the rights to look at another user's processes, only your own Ray is seen. Ray in a container with its own
network is left out; of one in a container with the node's network, it is not compared with the interface of NCCL, which
may have other variables there.

## Why it matters
Ray takes the address on the route to the internet, or what the hostname resolves to. Other nodes cannot reach the
node then: "This node has an IP address of ..., but Ray expects ...", or `ray status` shows one node only. Then vLLM
waits for GPUs.

## What to type
`ncheck plan nodes.txt --for ray` prints `ray start` with the right --node-ip-address for each node. `ray stop` ends
Ray on a node first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ncheck import HERE, PLAN, Cluster, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.host_load import HostLoadFacts
from ncheck.facts.nics import NicFacts
from ncheck.login_variables import to_remove
from ncheck.nccl.choice import PICK_FACTS, picked_addresses
from ncheck.network.own_address import interface_with, shown, why_unusable

RAY_PLAN = f"{PLAN} --for ray"


@cluster_check("NC342", Severity.WARNING, HostLoadFacts, NicFacts, EnvironmentFacts, also=PICK_FACTS)
def ray_address_wrong(cluster: Cluster) -> Iterator[Problem]:
    nodes, picked = cluster.facts(NicFacts), picked_addresses(cluster)
    for node in cluster:
        for raylet in node[HostLoadFacts].raylets:
            address = shown(raylet.address)
            wrong = partial(
                Problem, fix=RAY_PLAN, evidence=(f"pid {raylet.pid} raylet",), nodes=(node.name,), where=HERE, look=True
            )
            if why := why_unusable(raylet.address, node.name, nodes):
                yield wrong(f"Ray knows this node by {address}, which {why}", summary="Ray knows it by a wrong address")
            elif len(nodes) > 1 and node.name in picked and not raylet.contained:
                ray, nccl = interface_with(raylet.address, node[NicFacts]), picked[node.name].interface
                if ray and ray.name != nccl.name:
                    yield wrong(
                        f"Ray uses {ray.name} ({address}), and NCCL {nccl.name}", severity=Severity.INFO,
                        summary="Ray and NCCL use different networks",
                    )  # fmt: skip
    yield from _each_alone(cluster)


def _each_alone(cluster: Cluster) -> Iterator[Problem]:
    """Yield that every node looks for Ray on itself."""
    named = {node.name: node[EnvironmentFacts].variables.get("RAY_ADDRESS", "") for node in cluster}
    if len(named) > 1 and all(_host(address) in _HERE_ONLY for address in named.values()):
        fix = to_remove(cluster.facts(EnvironmentFacts)[next(iter(named))], "RAY_ADDRESS")
        yield Problem(
            "every login has RAY_ADDRESS at a loopback address: each node looks for a Ray of its own",
            fix.line, (), tuple(named), fix.where, fix.look, "RAY_ADDRESS is a loopback address",
        )  # fmt: skip


_HERE_ONLY = ("localhost", "127.0.0.1", "::1")


def _host(address: str) -> str:
    """Return "127.0.0.1" of "ray://127.0.0.1:10001", and "::1" of "[::1]:6379"; "" for the dashboard's http://."""
    if address.startswith(("http://", "https://")):
        return ""  # `ray job submit` sends to it, from the head node or through a tunnel
    place = address.rpartition("//")[2]
    return place.partition("]")[0][1:] if place.startswith("[") else place.partition(":")[0]
