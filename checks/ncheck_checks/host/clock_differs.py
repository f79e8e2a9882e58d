"""The clocks of the nodes differ by more than a second

## What it finds
Nodes whose clock is more than 1 s away from the median of all clocks. ncheck reads the clocks over its own connection
and subtracts half of the shortest round trip, so that a slow network is not mistaken for a wrong clock. clock-far-off
reports a clock that is more than a minute off.

## Why it matters
Log lines of different nodes can no longer be put in order, so the cause of a hang cannot be separated from its effects.
NCCL's and PyTorch's timeouts and flight records contain the nodes' own times.

## What to type
`timedatectl` on the node shows whether its clock is synchronized; `sudo timedatectl set-ntp true` synchronizes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.clock import ClockFacts
from ncheck.network.clock_offsets import MINUTE, SECOND, off_by


@cluster_check("NC601", Severity.WARNING, ClockFacts, alone=True)
def clock_differs(cluster: Cluster) -> Iterator[Problem]:
    yield from off_by(cluster, SECOND, MINUTE, "differs from the other clocks by more than a second")
