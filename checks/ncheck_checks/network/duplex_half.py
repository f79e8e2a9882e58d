"""An interface runs at half duplex

## What it finds
Interfaces that a job may use, and slaves of bonds, whose link came up at half duplex. What its driver tells no duplex
of, as in many virtual machines, is left out.

## Why it matters
The end at half duplex stops sending while the other end sends, and counts what crosses as a collision: a few per
cent of the packets are lost as soon as both directions are busy, as they are in every all-reduce. Single pings are
well.

## What to type
`sudo ethtool eno1` on the node shows what both ends offer; `sudo ethtool -s eno1 autoneg on` has them settle it again.
A switch port that is set to a fixed speed and duplex must be set to autonegotiation as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.nics import BMC_DRIVERS, NicFacts
from ncheck.parse.interface_names import Kind


@node_check("NC351", Severity.WARNING, NicFacts)
def duplex_half(node: NodeView) -> Iterator[Problem]:
    nics = node[NicFacts]
    slaves = tuple(nic for nic in nics.interfaces if nic.kind is Kind.BOND_SLAVE and nic.up and nic.running)
    for nic in (*nics.candidates, *slaves):
        if nic.duplex == "half" and nic.driver not in BMC_DRIVERS:
            yield Problem(f"{nic.name} runs at half duplex", f"sudo ethtool -s {quote(nic.name)} autoneg on")
