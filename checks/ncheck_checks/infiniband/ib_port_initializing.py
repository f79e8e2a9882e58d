"""An InfiniBand port waits for a subnet manager

## What it finds
HCA ports whose link is up but whose state stays Initializing or Armed: the cable works, but no subnet manager has
assigned an address to the port. Ethernet ports have no subnet manager and are not judged.

## Why it matters
NCCL uses only Active ports. Without a subnet manager no port of that fabric becomes Active, and the job falls back to
TCP, or fails, without naming the cause.

## What to type
`sudo sminfo -C HCA -P PORT` queries the subnet manager. If none answers: `sudo systemctl start opensm` on one node, or
start the one in the switch.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.nccl.hca_ports import chosen, problems


@cluster_check(
    "NC403", Severity.ERROR, InfinibandFacts, by_kind=True, alone=True, explains=SLOW_NETWORK, next_step="ticket"
)
def ib_port_initializing(cluster: Cluster) -> Iterator[Problem]:
    ports = chosen(
        cluster.facts(InfinibandFacts),
        lambda port: port.state in ("Initializing", "Armed") and port.link_layer != "Ethernet",
    )
    fault = "no answer from a subnet manager"
    return problems(ports, fault, "sudo sminfo -C {hca} -P {port}", "has no subnet manager")
