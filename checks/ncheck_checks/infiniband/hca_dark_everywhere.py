"""No node has a link on this card

## What it finds
InfiniBand cards whose ports are Down on every node alike, on nodes that use other InfiniBand cards. One node alone
has nothing to compare with: there such a port is named by ib-port-down or ib-port-polling.

## Why it matters
Cards that nobody cabled look like this, and are harmless. So does a whole rail whose switch is off: then the job
runs, and one NIC of each node carries nothing.

## What to type
`sudo iblinkinfo` lists the switches that answer. If the card is meant to be idle: `ncheck --ignore hca-dark-everywhere
nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.network.hca_ports import dark, problems


@cluster_check("NC406", Severity.WARNING, InfinibandFacts, by_kind=True)
def hca_dark_everywhere(cluster: Cluster) -> Iterator[Problem]:
    return problems(dark(cluster.facts(InfinibandFacts)), "no link on any node", "sudo iblinkinfo")
