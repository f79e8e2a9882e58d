"""An InfiniBand port is down

## What it finds
HCA ports that are Down and disabled, asleep or in training, while the same port of other nodes is Active, or no port of
the node is Active. Not reported are the second port of a card whose first port is in use, Ethernet ports that most
nodes leave unused, and cards that no node uses. ib-port-polling reports ports that are Polling. Ethernet ports count
where a job can use RoCE on some node, and on nodes with fewer Active ones than the others.

## Why it matters
NCCL silently skips the port. The ring through that node then lacks a rail: the whole job slows down, or stops with
"connection refused" if ranks expect the same ports on all nodes.

## What to type
`sudo ibportstate -C HCA -P PORT -D 0 PORT enable` enables a port that was disabled by hand; then
`sudo ibstat HCA PORT`. A RoCE port is enabled through its interface: `sudo ip link set NAME up`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ncheck import SLOW_NETWORK, Cluster, Problem, Severity, cluster_check
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.nccl.hca_ports import broken, problems, usable_ports

FIXES = {
    "InfiniBand": "sudo ibportstate -C {hca} -P {port} -D 0 {port} enable",
    "Ethernet": "sudo ip link set {netdev} up",
}


@cluster_check(
    "NC401",
    Severity.ERROR,
    InfinibandFacts,
    also=(LibraryFacts,),
    by_kind=True,
    alone=True,
    explains=SLOW_NETWORK,
    hardware=True,
)
def ib_port_down(cluster: Cluster) -> Iterator[Problem]:
    for layer, fix in FIXES.items():
        ports = broken(usable_ports(cluster), partial(_down, layer == "Ethernet"))
        yield from problems(ports, "down", fix, "is down", look=False)


def _down(ethernet: bool, port: HcaPort) -> bool:  # noqa: FBT001  one of two link layers
    return port.physical != "Polling" and ethernet == (port.link_layer == "Ethernet")
