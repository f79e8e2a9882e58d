"""An interface on a real wire has link-local addresses only

## What it finds
Interfaces that are up, on a real wire, and have nothing but 169.254.x.x or fe80:: addresses, where the interface of
that name has a proper address on most of the other nodes, or where the node has no proper address anywhere. Spare
ports, IPoIB that nobody gave addresses, and the management controller's USB card are left out.

## Why it matters
Such an address is what a machine gives itself when DHCP did not answer, or when nobody configured it. It holds on
one wire alone, and its IPv6 form is worth nothing without the sender's interface, so ranks that are told of it cannot
use it; NCCL takes it all the same where it finds no other.

## What to type
`ip -br address` on the node, and `networkctl status eth0` or `nmcli device show eth0` for why it has none;
`sudo dhclient -v eth0` asks for one anew where DHCP is in use.
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
            yield NotApplicable("one machine alone needs no network", nodes=(node,))
            continue
        for name, addresses in names.items():
            fix = f"ip -br address show dev {quote(name)}"
            yield Problem(f"{name} has link-local addresses only: {', '.join(addresses)}", fix, nodes=(node,))
