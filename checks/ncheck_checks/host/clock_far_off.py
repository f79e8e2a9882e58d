"""A node's clock is more than a minute off

## What it finds
Nodes whose clock is more than 60 s away from the median of all clocks. ncheck reads the clocks over its own connection
and subtracts half of the shortest round trip. Inside a job it is a warning: NCCL, gloo and MPI compare no clocks.

## Why it matters
Certificates appear expired or not yet valid (a download in the job fails), Kerberos and munge refuse the node's tickets
(Slurm steps do not start, home directories are denied), and files appear to come from the future.

## What to type
`timedatectl` on the node shows whether its clock is synchronized; `sudo timedatectl set-ntp true` synchronizes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.clock import ClockFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.network.clock_offsets import MINUTE, off_by


@cluster_check("NC603", Severity.ERROR, ClockFacts, also=(RanksFacts,), alone=True)
def clock_far_off(cluster: Cluster) -> Iterator[Problem]:
    severity = Severity.WARNING if cluster.facts(RanksFacts) else None
    for problem in off_by(cluster, MINUTE, inf, "is more than a minute off"):
        yield replace(problem, severity=severity)
