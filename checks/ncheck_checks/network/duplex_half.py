"""An interface runs at half duplex

## What it finds
Interfaces that a job may use, and members of bonds, whose link came up at half duplex. Interfaces whose driver does not
report the duplex mode, as in many virtual machines, are not judged.

## Why it matters
The half-duplex end stops sending while the other end sends, and counts the crossing packets as collisions. As soon as
both directions are busy, as in every all-reduce, a few per cent of the packets are lost. Single pings work.

## What to type
`sudo ethtool eno1` on the node shows what both ends offer; `sudo ethtool -s eno1 autoneg on` negotiates again. A switch
port with a fixed speed and duplex mode must be set to autonegotiation as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.nics import BMC_DRIVERS, Kind, NicFacts


@node_check("NC351", Severity.WARNING, NicFacts, hardware=True)
def duplex_half(node: NodeView) -> Iterator[Problem]:
    nics = node[NicFacts]
    members = tuple(nic for nic in nics.interfaces if nic.kind is Kind.BOND_SLAVE and nic.up and nic.running)
    for nic in (*nics.candidates, *members):
        if nic.duplex == "half" and nic.driver not in BMC_DRIVERS:
            yield Problem(f"{nic.name} runs at half duplex", f"sudo ethtool -s {quote(nic.name)} autoneg on")
