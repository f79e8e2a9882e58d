"""A link went down while ncheck ran

## What it finds
HCA ports that were Active and whose `link_downed` counter grew between the beginning and the end of the run, and their
network interfaces whose `carrier_down_count` grew. On nodes without an HCA that a job can use, the network cards with
an address and the members of bonds. Only what was counted during the run is reported, with the time and the bytes that
it took. A counter that was high before says nothing of today.

## Why it matters
A link that flaps within the minutes of a check will do so in a job of days. InfiniBand and RoCE give a link a few
seconds; then NCCL prints "Got completion from peer ... with status=12 (IBV_WC_RETRY_EXC_ERR)" and the job dies, or it
hangs until the watchdog's timeout. Meta's GPU cluster monitoring takes one InfiniBand flap for critical, and NVIDIA's
health validation fails a node with one outage of 30 seconds.

## What to type
`grep -H . /sys/class/infiniband/HCA/ports/PORT/*counters/*` shows the counters, `sudo dmesg -T | grep -i "link"` the
times. Take the node out of the job. Reseat the cable or transceiver and clean it; then exchange it, then the card, and
look at the switch port.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.error_counters import ErrorCountersFacts, LaterErrorCountersFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.error_growth import Growth, problems

_LOST = ("link_downed", "carrier_down_count")


@cluster_check(
    "NC425", Severity.ERROR, ErrorCountersFacts, LaterErrorCountersFacts,
    also=(InfinibandFacts, NicFacts, LibraryFacts), alone=True, explains=SLOW_NETWORK, hardware=True,
)  # fmt: skip
def link_lost_during_run(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    yield from problems(cluster, _LOST, _lost, "lost its link during the run")


def _lost(growth: Growth) -> dict[str, int]:
    return {name: growth.errors[name] for name in _LOST if name in growth.errors}
