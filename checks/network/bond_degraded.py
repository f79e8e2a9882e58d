"""A bond works with less than it is made of

## What it finds
Bonds with a slave that is down, with a slave at half the speed of another or less, with no active slave, or, under
802.3ad, with slaves that the switch did not take into the group that carries the data. A slow slave that only stands
by, as in an active-backup bond, is left out.

## Why it matters
The bond stays up and has its address, so nothing else looks wrong; the node has half of its bandwidth, and all ranks
wait for it. What is left fails with the next cable.

## What to type
`cat /proc/net/bonding/bond0` shows each slave; `sudo ethtool eno1` tells whether that one has a link and at what speed.
A slave of another aggregator is plugged into another switch, or into a port that is not in the same LACP group.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from doctor import NodeView, Problem, Severity, node_check
from doctor.model.facts import BondFacts
from doctor.reasoning.bonds import troubles


@node_check("NC359", Severity.WARNING, BondFacts)
def bond_degraded(node: NodeView) -> Iterator[Problem]:
    for bond in node[BondFacts].bonds:
        if told := "; ".join(troubles(bond)):
            yield Problem(f"{bond.name}: {told}", f"cat {quote('/proc/net/bonding/' + bond.name)}")
