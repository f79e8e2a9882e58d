"""The interface that was asked for does not serve all nodes

## What it finds
An interface that `--ifname` (or `ifname` in ncheck.toml) names for the job, and that some node does not have, that is
down there, has no link or no address, that leads into no subnet of all nodes, or over which the nodes, as they tried,
do not reach each other.

## Why it matters
NCCL takes the name as it stands: where it fits nothing, NCCL stops with "no socket interface found"; where it leads
elsewhere, the job hangs before its first step. ncheck sets no other interface against the word of its user, and leaves
the value open instead.

## What to type
`ip -br address` on the named nodes shows what there is; without `--ifname` the choice is ncheck's: `ncheck plan
nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.links import LinkFacts
from ncheck.facts.nics import NicFacts
from ncheck.facts.run import JobFacts
from ncheck.nccl.requested_interface import problems_of


@cluster_check("NC330", Severity.ERROR, NicFacts, JobFacts, also=(LinkFacts,), alone=True)
def ifname_not_there(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    name = next((job.ifname for job in cluster.facts(JobFacts).values()), None)
    if name is None:
        yield NotApplicable("no interface was asked for (--ifname)")
        return
    for told, nodes in problems_of(name, cluster.facts(NicFacts), cluster.facts(LinkFacts)).items():
        yield Problem(f"--ifname {name}: {told}", "ip -br address", nodes=nodes)
