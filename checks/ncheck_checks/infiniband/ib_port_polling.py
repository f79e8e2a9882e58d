"""An InfiniBand port has no link partner

## What it finds
HCA ports that are Down and Polling: enabled, but nothing answers at the other end of the cable. The exceptions are
those of ib-port-down: the spare port of a card in use, and cards that no node uses.

## Why it matters
A cable is unplugged, broken or in the wrong port, or the switch port is off. NCCL silently skips the port, and the job
runs on the remaining rails, or stops if ranks expect the same ports on all nodes.

## What to type
`sudo mlxlink -d HCA -p PORT -m -c` shows the module and cable that are plugged in, if any, and why the link does not
come up: compare its part number and speed with those of the same port of a healthy node. `sudo iblinkinfo` on a healthy
node shows the switch's side: one of its ports that are Down/Polling is the other end, or the cable is in none of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.nccl.hca_ports import broken, problems, usable_ports


@cluster_check(
    "NC402",
    Severity.ERROR,
    InfinibandFacts,
    also=(LibraryFacts,),
    by_kind=True,
    alone=True,
    explains=SLOW_NETWORK,
    hardware=True,
)
def ib_port_polling(cluster: Cluster) -> Iterator[Problem]:
    ports = broken(usable_ports(cluster), lambda port: port.physical == "Polling")
    fault = "nothing answers at the other end of the cable (Polling): compare its module with that of a healthy node"
    return problems(ports, fault, "sudo mlxlink -d {hca} -p {port} -m -c", "has no link")
