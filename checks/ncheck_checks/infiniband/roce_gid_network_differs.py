"""NCCL would pick a RoCE address of another network than on the other nodes

## What it finds
RoCE ports with several IPv4 addresses whose first RoCE v2 GID, which NCCL takes, is in another network than that of the
same port on most nodes, although the port has a GID in that network, too. Ports that are in different networks
altogether are not reported: routed RoCE has one network per node.

## Why it matters
GIDs are numbered in the order in which addresses were added, so the order differs between nodes. If nothing routes
between the two networks, connections end with "Got completion with error 12"; else the traffic takes another path.

## What to type
`export NCCL_IB_ADDR_RANGE=NETWORK` (NCCL 2.21.5 or newer) in the job's environment on all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Fix, NodeView, NotApplicable, Problem, Severity, cluster_check, nodes_by_value, split
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.hcas import HcaFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.nics import Address, NicFacts
from ncheck.nccl.hca import ipv4_gids, nccl_value, ports_of_job
from ncheck.nccl.hca_ports import Place, usable
from ncheck.nccl.settings import lasting, releases_of

STEERING = ("NCCL_IB_ADDR_RANGE", "NCCL_IB_GID_INDEX")


@cluster_check(
    "NC417", Severity.WARNING, InfinibandFacts, HcaFacts, NicFacts,
    also=(EnvironmentFacts, LoadedNcclFacts, LibraryFacts),
)  # fmt: skip
def roce_gid_network_differs(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    networks = _networks(cluster)
    for node, own in networks.items():
        if not own:
            yield NotApplicable(
                "no Active RoCE port with an IPv4 address that a job can use, or the GID is set", (node,)
            )
    for place in sorted({place for own in networks.values() for place in own}):
        parted = split({node: own[place][0] for node, own in networks.items() if place in own})
        usual = parted.majority if parted else None
        if parted is None or usual is None:
            continue
        wrong = tuple(node for node in parted.odd if usual in networks[node][place])
        for fix, nodes in nodes_by_value({node: _to_use(usual, cluster[node]) for node in wrong}).items():
            yield Problem(
                f"{place[0]} port {place[1]}: NCCL would use different networks: {parted.summary()}", fix.line,
                nodes=nodes, look=fix.look, summary=f"{place[0]} would use another network",
            )  # fmt: skip


def _to_use(network: str, node: NodeView) -> Fix:
    """Return the command that lets a node's jobs use this network."""
    environment = node.maybe(EnvironmentFacts)
    known = environment if isinstance(environment, EnvironmentFacts) else EnvironmentFacts({}, {})
    return lasting(STEERING[0], network, known, releases_of(node.maybe(LoadedNcclFacts))[-1])


def _networks(cluster: Cluster) -> dict[str, dict[Place, list[str]]]:
    """Return the networks of each RoCE port's GIDs, by node; NCCL takes the first."""
    found: dict[str, dict[Place, list[str]]] = {}
    for name, ports in ports_of_job(cluster).items():
        node = cluster[name]
        steered = any(nccl_value(node, variable) for variable in STEERING)
        of_address = {one.ip: one for nic in node[NicFacts].interfaces for one in nic.addresses}
        used = [] if steered else [port for port in ports if usable(port.hca, node.maybe(LibraryFacts))]
        own = {port.place: _of(port, node[HcaFacts], of_address) for port in used}
        found[name] = {place: networks for place, networks in own.items() if networks}
    return found


def _of(port: HcaPort, details: HcaFacts, of_address: dict[str, Address]) -> list[str]:
    gids = details.of(*port.place).gids if port.link_layer == "Ethernet" else ()
    return [of_address[address].network for _, address in ipv4_gids(gids) if address in of_address]
