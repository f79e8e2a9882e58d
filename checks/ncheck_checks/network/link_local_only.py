"""An interface has only link-local addresses

## What it finds
Interfaces on a real network that are up and have only 169.254.x.x or fe80:: addresses. They are reported if the
interface of that name has another address on most of the other nodes, or if the node has no other address at all. Spare
ports, IPoIB interfaces without addresses, and the management controller's USB interface are not reported.

## Why it matters
A machine gives itself such an address if DHCP does not answer or nothing was configured. The address works on one
network segment only, and its IPv6 form also needs the sender's interface, so other ranks cannot use it. NCCL still
picks it if it finds no other.

## What to type
`ip -br address` on the node, and `networkctl status eth0` or `nmcli device show eth0` for the cause;
`sudo dhclient -v eth0` requests an address where DHCP is in use.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import ListingFacts
from ncheck.facts.nics import NicFacts
from ncheck.network.subnets import link_local_only as only_link_local


@cluster_check("NC357", Severity.WARNING, NicFacts, ListingFacts, alone=True)
def link_local_only(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    for node, names in only_link_local(cluster.facts(NicFacts)).items():
        if cluster.facts(ListingFacts)[node].places == ("local",):
            yield NotApplicable("a single machine needs no network", nodes=(node,))
            continue
        for name, addresses in names.items():
            fix = f"ip -br address show dev {quote(name)}"
            yield Problem(
                f"{name} has link-local addresses only: {', '.join(addresses)}", fix, nodes=(node,), look=True
            )
