"""The nodes' clocks are more than a second apart

## What it finds
Nodes whose clock is over 1 s away from the middle one of all clocks, asked over ncheck's own connection and corrected
by half of the quickest round trip, so that a slow network is not taken for a wrong clock. One that is over a minute
away is NC603's.

## Why it matters
Lines in the logs of different nodes can no longer be put in order, which is how a hang is told from its cause; NCCL's
and PyTorch's time-outs and flight records carry the nodes' own times.

## What to type
`timedatectl` on the node shows whether its time is kept; `sudo timedatectl set-ntp true` has it kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.clock import ClockFacts
from ncheck.network.clock_offsets import MINUTE, SECOND, off_by


@cluster_check("NC601", Severity.WARNING, ClockFacts, alone=True)
def clock_differs(cluster: Cluster) -> Iterator[Problem]:
    yield from off_by(cluster, SECOND, MINUTE, "differs from the other clocks by more than a second")
