"""An InfiniBand port is slower or faster than the same port elsewhere

## What it finds
Active ports whose rate is not that of the same port of the other nodes. Where nodes name their HCAs differently, the
rates of all Active ports are compared as one list. Different rates of different cards in one node are no finding.

## Why it matters
A link that came up with fewer lanes or an older speed looks healthy everywhere but in its rate. All nodes wait for
the slowest link in every step.

## What to type
`sudo ibstat HCA PORT` shows the rate; `sudo iblinkinfo` marks links that could run wider or faster ("Could be ...").
Clean or change the cable, then reset the port: `sudo ibportstate -C HCA -P PORT -D 0 PORT reset`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.network.hca_ports import rates_apart, without_rate


@cluster_check("NC404", Severity.ERROR, InfinibandFacts, by_kind=True)
def ib_rate_differs(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    for parted, places in rates_apart(cluster.facts(InfinibandFacts)).items():
        yield Problem(f"rate of {', '.join(places)}: {parted.told()}", "sudo iblinkinfo", nodes=parted.odd)
    for node, ports in without_rate(cluster.facts(InfinibandFacts)).items():
        yield Inconclusive(f"{ports[0].hca} port {ports[0].port} is Active and does not say its rate", (node,))
