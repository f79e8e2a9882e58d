"""The rate of an InfiniBand port differs between nodes

## What it finds
Active ports whose rate differs from that of the same port on other nodes. If nodes name their HCAs differently, the
rates of all Active ports are compared as one list. Different rates of different cards in one node are not reported,
nor Ethernet ports where no job can use RoCE on any node.

## Why it matters
A link that came up with fewer lanes or at an older speed looks healthy except for its rate. In every step, all nodes
wait for the slowest link.

## What to type
`sudo ibstat HCA PORT` shows the rate; `sudo iblinkinfo` marks links that could run wider or faster ("Could be ...").
Clean or replace the cable, then reset the port: `sudo ibportstate -C HCA -P PORT -D 0 PORT reset`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.nccl.hca_ports import differing_rates, usable_ports, without_rate


@cluster_check(
    "NC404", Severity.ERROR, InfinibandFacts, also=(LibraryFacts,), by_kind=True, explains=SLOW_NETWORK, hardware=True
)
def ib_rate_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    ports = usable_ports(cluster)
    for parted, places in differing_rates(ports).items():
        yield Problem(
            f"the rate of {', '.join(places)} differs: {parted.summary()}",
            "sudo iblinkinfo",
            nodes=parted.odd,
            look=True,
            summary=f"the rate of {places[0]} differs",
        )
    for node, found in without_rate(ports).items():
        yield Inconclusive(f"{found[0].hca} port {found[0].port} is Active but reports no rate", (node,))
