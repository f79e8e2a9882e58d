"""Nodes refuse each other's connections

## What it finds
Pairs of nodes between which a connection was refused although ncheck's agent listens on that address and port. A
firewall answers with a reset, or a middlebox answers in place of the node. It is reported if no other subnet connects
all nodes.

## Why it matters
NCCL, gloo and MPI listen on ports that the kernel picks, as the agent does. NCCL retries for a minute and stops with
"Connection refused"; MPI stops or hangs.

## What to type
`sudo nft list ruleset` on the named node: look for "reject", and allow all ports from the addresses of the other nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.nccl.link_problems import ALSO, READS, Weight, problems
from ncheck.network.link_faults import FaultKind


@cluster_check("NC310", Severity.ERROR, *READS, also=ALSO)
def link_refused(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    return problems(cluster, Weight.NEEDED, FaultKind.REFUSED)
