"""A link damages data: its error counters grow

## What it finds
Ports and network cards that a job uses and that counted damaged data between the beginning and the end of the run:
`symbol_error` above one in 10^12 bits at the port's rate (the bit error rate that the InfiniBand specification allows,
and ibdiagnet's default threshold), or any `port_rcv_errors`, `link_error_recovery`, `local_link_integrity_errors`,
`excessive_buffer_overrun_errors` (ibqueryerrors reports these from the first one) or `rx_icrc_encapsulated`. Of
Ethernet cards more than one `rx_crc_errors` or `rx_frame_errors`, and more than one in 10^12 bits that were received
(the bit error rate of IEEE 802.3). What was counted before the run is not reported.

## Why it matters
Damaged packets are sent again, so the job is right and slow, and its speed changes from step to step. Such a cable is
often the next one to lose its link, which ends the job.

## What to type
`grep -H . /sys/class/infiniband/HCA/ports/PORT/*counters/*` or `ip -s -s link show dev NAME` shows the counters,
`sudo mlxlink -d HCA -m -c` (NVIDIA's tools) the cable and its error rates. Clean and reseat both ends, then exchange
the cable or transceiver; if the errors stay, look at the switch port and the card.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.error_counters import ErrorCountersFacts, LaterErrorCountersFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.error_growth import DAMAGE_NOW, Growth, problems

_SYMBOLS = "symbol_error"
_DAMAGED = (
    "port_rcv_errors", "link_error_recovery", "local_link_integrity_errors", "excessive_buffer_overrun_errors",
    "rx_icrc_encapsulated", "rx_crc_errors", "rx_frame_errors",
)  # fmt: skip
_ALLOWED = 1e-12  # errors per bit
_BITS = 1e9  # of a Gb


@cluster_check(
    "NC426", Severity.WARNING, ErrorCountersFacts, LaterErrorCountersFacts,
    also=(InfinibandFacts, NicFacts, LibraryFacts), alone=True, explains=(SLOW_NETWORK, DAMAGE_NOW), hardware=True,
)  # fmt: skip
def link_errors_grow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    yield from problems(cluster, (_SYMBOLS, *_DAMAGED), _damaged, "received damaged data during the run")


def _damaged(growth: Growth) -> dict[str, int]:
    """Return the counters that grew too much. A link sends symbols when it is idle, too: its rate counts."""
    received = 8.0 * growth.received
    symbols = growth.rate * _BITS * growth.seconds if growth.rate else received
    bits = {_SYMBOLS: symbols, "rx_crc_errors": received, "rx_frame_errors": received}
    most = {name: max(1.0, bits[name] * _ALLOWED) if name in bits else 0 for name in (_SYMBOLS, *_DAMAGED)}
    return {name: growth.errors[name] for name in most if growth.errors.get(name, 0) > most[name]}
