"""An InfiniBand port finds no partner

## What it finds
Ports of HCAs that are Down and Polling: enabled, and with nothing at the other end of the cable. The same ports are
let off as in ib-port-down: the spare port of a card in use, and cards that no node uses.

## Why it matters
A cable is out, broken or in the wrong socket, or the switch port is off. NCCL silently leaves the port out, and the
job runs on the rails that are left, or stops where ranks count on the same ports everywhere.

## What to type
`sudo ibstat HCA PORT` while the cable is put back in, until it says LinkUp; `sudo iblinkinfo` on a healthy node shows
the switch's side.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.network.hca_ports import broken, problems


@cluster_check("NC402", Severity.ERROR, InfinibandFacts, by_kind=True, alone=True)
def ib_port_polling(cluster: Cluster) -> Iterator[Problem]:
    ports = broken(cluster.facts(InfinibandFacts), lambda port: port.physical == "Polling")
    return problems(ports, "Polling, nothing answers at the other end of the cable", "sudo ibstat {hca} {port}")
