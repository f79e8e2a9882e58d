"""A node has no interface that a job could use

## What it finds
Nodes on which no interface on a real wire (a card, a bond, a vlan, a bridge, InfiniBand) is up, has a carrier and has
an address of more than link scope. In a container, the one way out of it counts. A machine that is checked alone
needs none.

## Why it matters
Ranks meet over TCP even where data goes over InfiniBand. With nothing but lo and docker0, NCCL takes one of these and
offers an address that no other node can reach.

## What to type
`ip -br address` shows names, states and addresses; `sudo ip link set NAME up` raises one; `sudo ethtool NAME` tells
whether a cable is in.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.login import ListingFacts
from ncheck.facts.nics import Interface, NicFacts
from ncheck.network.subnets import subnet_addresses


@node_check("NC301", Severity.ERROR, NicFacts, ListingFacts)
def no_usable_interface(node: NodeView) -> Iterator[Problem | NotApplicable]:
    nics = node[NicFacts]
    if node[ListingFacts].places == ("local",):
        yield NotApplicable("one machine alone needs no network")
    elif not any(subnet_addresses(nics)):
        evidence = tuple(_told(nic) for nic in nics.interfaces)
        yield Problem("no interface that a job's data could leave by", "ip -br address", evidence)


def _told(nic: Interface) -> str:
    state = ("up" if nic.running else "up, no carrier") if nic.up else "down"
    return f"{nic.name}: {nic.kind.value}, {state}, {', '.join(a.ip for a in nic.addresses) or 'no address'}"
