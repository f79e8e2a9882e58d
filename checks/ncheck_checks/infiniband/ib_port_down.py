"""An InfiniBand port is down

## What it finds
Ports of HCAs that are Down and disabled, asleep or in training, while the same port of the other nodes is Active or
no port of the node is. The second port of a card whose first is in use, Ethernet ports that most nodes leave unused,
and cards that no node uses are not blamed. A port that is Polling has its own check.

## Why it matters
NCCL silently leaves the port out. The ring through that node is then a rail short: the whole job slows down to it, or
stops with "connection refused" where ranks count on the same ports everywhere.

## What to type
`sudo ibportstate -C HCA -P PORT -D 0 PORT enable` wakes a port that was disabled by hand; then `sudo ibstat HCA PORT`.
A RoCE port is woken by its interface: `sudo ip link set NAME up`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.network.hca_ports import broken, problems

TO_WAKE = {
    "InfiniBand": "sudo ibportstate -C {hca} -P {port} -D 0 {port} enable",
    "Ethernet": "sudo ip link set {netdev} up",
}


@cluster_check("NC401", Severity.ERROR, InfinibandFacts, by_kind=True, alone=True)
def ib_port_down(cluster: Cluster) -> Iterator[Problem]:
    for layer, fix in TO_WAKE.items():
        ports = broken(cluster.facts(InfinibandFacts), partial(_asleep, layer == "Ethernet"))
        yield from problems(ports, "down", fix)


def _asleep(ethernet: bool, port: HcaPort) -> bool:  # noqa: FBT001  one of two kinds
    return port.physical != "Polling" and ethernet == (port.link_layer == "Ethernet")
