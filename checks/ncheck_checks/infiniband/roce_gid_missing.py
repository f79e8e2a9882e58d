"""A RoCE port has no address of the kind that NCCL uses

## What it finds
Active RoCE ports that NCCL uses without a GID of type RoCE v2 with an IPv4 address, while half of the nodes or more
have one on the same port; and nodes that have none at all, while others have some. Nodes where NCCL_IB_ADDR_FAMILY asks
for IPv6 are not judged, and ports that the job cannot open, where NCCL uses TCP.

## Why it matters
RoCE takes its GIDs from the IP addresses of the interface. Without an IPv4 address, NCCL falls back to GID 0, which is
link-local and often RoCE v1: connections end with "Got completion with error 12" or "ibv_modify_qp failed with
Connection timed out" (or "Network is unreachable"), although the port is Active and `ping` works on other interfaces.

## What to type
`ip -br address` shows whether the interface has an address and is up; `show_gids` or
`grep . /sys/class/infiniband/*/ports/*/gid_attrs/types/*` lists the GIDs. Set the address, as on the other nodes. In a
container with a network of its own, the GIDs belong to interfaces of the host: use the network of the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, NodeView, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.hcas import HcaFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.nccl.hca import ipv4_gids, nccl_value, ports_of_job
from ncheck.nccl.hca_ports import listed, usable


@cluster_check(
    "NC416",
    Severity.ERROR,
    InfinibandFacts,
    HcaFacts,
    also=(EnvironmentFacts, LoadedNcclFacts, LibraryFacts),
    by_kind=True,
    next_step="fix-first",
)
def roce_gid_missing(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    roce = {
        node: {port: _has_ipv4(port, cluster[node][HcaFacts]) for port in ports if _is_used(port, cluster[node])}
        for node, ports in ports_of_job(cluster).items()
        if nccl_value(cluster[node], "NCCL_IB_ADDR_FAMILY") != "AF_INET6"
    }
    for node in cluster.names:
        if not roce.get(node):
            yield NotApplicable("no Active RoCE port with IPv4", (node,))
    all_ports = Counter(port.place for ports in roce.values() for port in ports)
    good = Counter(port.place for ports in roce.values() for port, has in ports.items() if has)
    usual = 2 * sum(any(ports.values()) for ports in roce.values()) >= sum(map(bool, roce.values()))
    for node, ports in roce.items():
        none = usual and not any(ports.values())
        lacking = [
            port for port, has in ports.items()
            if not has and (none or 2 * good[port.place] >= all_ports[port.place])
        ]  # fmt: skip
        if lacking:
            yield Problem(
                f"{listed(port.place for port in lacking)}: no RoCE v2 GID with an IPv4 address",
                f"ip -br address show dev {quote(lacking[0].netdev)}" if lacking[0].netdev else "ip -br address",
                nodes=(node,),
                look=True,
                summary=f"{lacking[0].hca} has no IPv4 GID",
            )


def _is_used(port: HcaPort, node: NodeView) -> bool:
    """Return whether NCCL uses RoCE on this port: with a device that the job cannot use, it uses TCP."""
    return port.link_layer == "Ethernet" and usable(port.hca, node.maybe(LibraryFacts))


def _has_ipv4(port: HcaPort, details: HcaFacts) -> bool:
    return any(ipv4_gids(details.of(*port.place).gids))
