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

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.bonds import Bond, BondFacts


def troubles(bond: Bond) -> Iterator[str]:
    """Yield what is wrong, in words that follow the bond's name."""
    standing_by = "active-backup" in bond.mode
    yield from (f"{slave.name} is down" for slave in bond.slaves if not slave.up)
    if not bond.slaves:
        yield "it has no slave"
    if standing_by and bond.active is None:
        yield "no slave is active"
    fastest = max((slave.speed or 0 for slave in bond.slaves if slave.up), default=0)
    for slave in bond.slaves:
        carries = slave.name == bond.active or not standing_by
        if slave.up and carries and slave.speed and 2 * slave.speed <= fastest:
            yield f"{slave.name} runs at {slave.speed / 1000:g} of {fastest / 1000:g} Gb/s"
    yield from (f"{name} is in another aggregator than the others" for name in _left_out(bond))


def _left_out(bond: Bond) -> list[str]:
    """Return the slaves outside the group that carries the data: the one the bond names, else the largest one."""
    groups = [slave.aggregator for slave in bond.slaves if slave.up and slave.aggregator is not None]
    carrying = bond.aggregator if bond.aggregator in groups else max(groups, key=groups.count, default=None)
    return [slave.name for slave in bond.slaves if slave.up and slave.aggregator not in (None, carrying)]


@node_check("NC359", Severity.WARNING, BondFacts)
def bond_degraded(node: NodeView) -> Iterator[Problem]:
    for bond in node[BondFacts].bonds:
        if told := "; ".join(troubles(bond)):
            yield Problem(f"{bond.name}: {told}", f"cat {quote('/proc/net/bonding/' + bond.name)}")
