"""A port has counted far more errors than others

## What it finds
HCA ports that a job uses and whose `symbol_error`, `port_rcv_errors`, `local_link_integrity_errors`,
`link_error_recovery` or `link_downed` stand out, and network cards whose `rx_crc_errors` do, by what was counted since
the node was started. These mean damage on the way: a cable, a transceiver, a connector. Counters that depend on traffic
and congestion (`rx_dropped`, `out_of_buffer`, `port_xmit_discards`, pause frames) are not compared.

There is no fixed limit. A count stands out if its part of the sum of all ports, in total and per day, has a chance
below 1 in 2,000 in a healthy cluster, where the rates of ports may differ much (a gamma distribution of shape 1/2; our
own choice). At least four nodes with the same port are compared by themselves, too. Fewer than 10 events or 100 errors
never stand out, and a count that many ports have does not: a switch that was started again, an old type of cable. Where
all are high, link-errors-grow tells whether they still grow. Some InfiniBand counters stop at 255 or 65535.

## Why it matters
A link that counts more than all others is often named by its counters days before it fails. It then ends the job, or
slows it down: what is damaged is sent again.

## What to type
`grep -H . /sys/class/infiniband/HCA/ports/PORT/*counters/*` or `ip -s -s link show dev NAME` shows the counters,
`sudo mlxlink -d HCA -m -c` (NVIDIA's tools) the cable and its error rates. Clean and reseat both ends, or exchange the
cable or transceiver. `sudo perfquery -R` sets the counters to 0 after that.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.error_counters import ErrorCountersFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.error_growth import DAMAGE_NOW, looked_at, used_ports
from ncheck.outliers import ERRORS, EVENTS, Series

_OF_PORTS = {
    "symbol_error": ERRORS, "port_rcv_errors": ERRORS, "local_link_integrity_errors": EVENTS,
    "link_error_recovery": EVENTS, "link_downed": EVENTS,
}  # fmt: skip
_OF_CARDS = {"rx_crc_errors": ERRORS}


@cluster_check(
    "NC428",
    Severity.WARNING,
    ErrorCountersFacts,
    also=(InfinibandFacts, NicFacts, LibraryFacts),
    alone=True,
    hardware=True,
)
def link_counters_stand_out(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    ports, cards = Series(_OF_PORTS), Series(_OF_CARDS)
    facts = cluster.facts(ErrorCountersFacts)
    for node, own in facts.items():
        for name, port in own.ports.items():
            if port.counters:
                (ports if ":" in name else cards).add(node, name, {"": port.errors})
    if not (ports.comparable or cards.comparable):
        yield NotApplicable("too few ports and network cards count errors to compare them")
    days = {node: own.days for node, own in facts.items()}
    lines: dict[tuple[str, str], list[str]] = {}
    for outlier in (*ports.outliers(days), *cards.outliers(days)):
        node, name, _ = outlier.place
        if name in used_ports(cluster[node]):
            lines.setdefault((node, name), []).append(outlier.line(outlier.counter))
    for (node, name), found in lines.items():
        summary = f"{name} has counted far more errors than others"
        yield Problem(
            found[0], looked_at(name), tuple(found[1:]), (node,), look=True, summary=summary, follows=DAMAGE_NOW
        )
