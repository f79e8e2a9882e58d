"""A card has no link on any node

## What it finds
InfiniBand cards whose ports are Down on all nodes, on nodes that use other InfiniBand cards. With a single node there
is nothing to compare; ib-port-down or ib-port-polling reports such a port there.

## Why it matters
Cards without a cable look like this and do no harm. So does a whole rail whose switch is off: the job runs, but one NIC
of each node transfers no data.

## What to type
`sudo iblinkinfo` lists the switches that answer. If the card is unused on purpose:
`ncheck --ignore hca-dark-everywhere nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.nccl.hca_ports import dark, problems


@cluster_check("NC406", Severity.WARNING, InfinibandFacts, by_kind=True)
def hca_dark_everywhere(cluster: Cluster) -> Iterator[Problem]:
    return problems(
        dark(cluster.facts(InfinibandFacts)), "no link on any node", "sudo iblinkinfo", "has no link on any node"
    )
