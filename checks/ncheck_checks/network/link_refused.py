"""Nodes refuse each other's connections

## What it finds
Pairs of nodes between which a connection was refused although ncheck's agent listens at that very address and port: a
firewall that answers with a reset, or a middlebox that answers in the node's place. It is named where the nodes have no
other subnet in which all reach each other.

## Why it matters
NCCL, gloo and MPI listen on ports that the kernel picks, as the agent did. NCCL tries again for a minute and stops with
"Connection refused"; MPI stops or hangs.

## What to type
`sudo nft list ruleset` on the node that is named: look for "reject", and let in the other nodes' addresses, all ports.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.network.link_faults import Trouble
from ncheck.network.link_problems import ALSO, READS, Weight, problems


@cluster_check("NC310", Severity.ERROR, *READS, also=ALSO)
def link_refused(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, Trouble.REFUSED)
