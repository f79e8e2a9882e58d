"""The requested interface cannot serve all nodes

## What it finds
An interface that `--ifname` (or `ifname` in ncheck.toml) names for the job, and that some node does not have, that is
down there, has no link or no address, that is in no subnet of all nodes, or over which the nodes failed to connect to
each other.

## Why it matters
NCCL takes the name literally: if it matches nothing, NCCL stops with "no socket interface found"; if it leads to
another network, the job hangs before its first step. ncheck does not override the user's choice; it leaves the value
in the plan undecided.

## What to type
`ip -br address` on the named nodes shows the interfaces; without `--ifname`, ncheck chooses one:
`ncheck plan nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.links import LinkFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.run import JobFacts
from ncheck.nccl.requested_interface import problems_of


@cluster_check("NC330", Severity.ERROR, NicFacts, JobFacts, also=(LinkFacts,), alone=True, next_step="fix-first")
def ifname_not_there(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    name = next((job.ifname for job in cluster.facts(JobFacts).values()), None)
    if name is None:
        yield NotApplicable("no interface was requested (--ifname)")
        return
    for defect, nodes in problems_of(name, cluster.facts(NicFacts), cluster.facts(LinkFacts)).items():
        yield Problem(f"--ifname {name}: {defect}", "ip -br address", nodes=nodes, look=True)
