"""An InfiniBand link runs far below what its card can do

## What it finds
Active InfiniBand ports of ConnectX-4 or newer cards (and Connect-IB) with one lane instead of four, or at SDR, the
speed of 2001 (2.5 Gb/s per lane), on every node that has this port. If the rate differs between nodes, ib-rate-differs
reports it. ncheck can see lanes and speed of a link (sysfs, "400 Gb/sec (4X NDR)"), but without root nothing shows the
maximum of this card with this cable. So a link with two lanes, or at the speed of an older switch, is not reported:
both are sold (HDR100 and NDR200 have two lanes).

## Why it matters
A link falls back to one lane or to the lowest speed if the cable or a transceiver is bad or dirty: it looks healthy,
and transfers a quarter of the data or less. All nodes wait for it in every step.

## What to type
`sudo iblinkinfo` marks links that could be wider or faster ("Could be 4X"). Clean or replace the cable, then reset the
port: `sudo ibportstate -C HCA -P PORT -D 0 PORT reset`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.hcas import HcaFacts, HcaPortDetails
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.nccl.hca import active, is_virtual
from ncheck.nccl.hca_ports import differing_rates, listed

_CONNECT_IB = 4113  # MT4113; later cards are MT4115, MT4129, MT41692 and the like, with four lanes and at least FDR


@cluster_check("NC421", Severity.ERROR, InfinibandFacts, HcaFacts, alone=True, explains=SLOW_NETWORK, hardware=True)
def ib_link_narrow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    infiniband, hcas = cluster.facts(InfinibandFacts), cluster.facts(HcaFacts)
    reported = {node for parted in differing_rates(infiniband) for node in parted.odd}
    for node, facts in infiniband.items():
        ports = [port for port in active(facts.ports) if _is_known(port)]
        details = [hcas[node].of(*port.place) for port in ports]
        slow = [(port, link) for port, link in zip(ports, details, strict=True) if _is_slow(link)]
        unread = [port.hca for port, link in zip(ports, details, strict=True) if link.lanes is None]
        if not ports:
            yield NotApplicable("no Active InfiniBand port of a ConnectX card", (node,))
        elif slow and node not in reported:
            first, link = slow[0]
            yield Problem(
                f"{listed(port.place for port, _ in slow)}: {link.lanes} of 4 lanes at {link.speed}",
                "sudo iblinkinfo", nodes=(node,), look=True, summary=f"{first.hca} has a slow link",
            )  # fmt: skip
        elif unread:
            yield Inconclusive(f"sysfs shows no lanes of {unread[0]}", (node,))


def _is_known(port: HcaPort) -> bool:
    number = port.hca_type.removeprefix("MT")
    modern = number.isdecimal() and number.startswith("41") and int(number) >= _CONNECT_IB
    return modern and port.link_layer == "InfiniBand" and not is_virtual(port)


def _is_slow(link: HcaPortDetails) -> bool:
    return link.lanes == 1 or link.speed == "SDR"
