"""A node's clock is more than a minute off

## What it finds
Nodes whose clock is over 60 s away from the middle one of all clocks, asked over ncheck's own connection and corrected
by half of the quickest round trip.

## Why it matters
Certificates are not valid yet or no more (a download in the job fails), Kerberos and munge refuse the node's tickets
(Slurm's steps do not start, home folders are denied), and files look as if they were written in the future.

## What to type
`timedatectl` on the node shows whether its time is kept; `sudo timedatectl set-ntp true` has it kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.clock import ClockFacts
from ncheck.network.clock_offsets import MINUTE, off_by


@cluster_check("NC603", Severity.ERROR, ClockFacts, alone=True)
def clock_far_off(cluster: Cluster) -> Iterator[Problem]:
    yield from off_by(cluster, MINUTE, inf, "is more than a minute off")
