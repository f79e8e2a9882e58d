"""A bond does not use all of its interfaces

## What it finds
Bonds with an interface that is down or runs at half the speed of another or less, bonds with no active interface, and
802.3ad bonds with interfaces that are not in the aggregation group that carries the data. A slow standby interface, as
in an active-backup bond, is not reported.

## Why it matters
The bond stays up and keeps its address, so nothing else looks wrong. The node has half of its bandwidth, and all ranks
wait for it. The next cable that fails takes the node off the network.

## What to type
`cat /proc/net/bonding/bond0` shows each interface; `sudo ethtool eno1` shows whether it has a link and at what speed.
An interface in another aggregator is connected to another switch, or to a port outside the LACP group.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.bonds import Bond, BondFacts


def _defects(bond: Bond) -> Iterator[str]:
    """Yield what is wrong with a bond."""
    has_standby = "active-backup" in bond.mode
    yield from (f"{slave.name} is down" for slave in bond.slaves if not slave.up)
    if not bond.slaves:
        yield "it has no interface"
    if has_standby and bond.active is None:
        yield "no interface is active"
    fastest = max((slave.speed or 0 for slave in bond.slaves if slave.up), default=0)
    for slave in bond.slaves:
        carries = slave.name == bond.active or not has_standby
        if slave.up and carries and slave.speed and 2 * slave.speed <= fastest:
            yield f"{slave.name} runs at {slave.speed / 1000:g} of {fastest / 1000:g} Gb/s"
    yield from (f"{name} is in another aggregation group than the others" for name in _left_out(bond))


def _left_out(bond: Bond) -> list[str]:
    """Return the interfaces outside the group that carries the data: the bond's active group, or else the largest."""
    groups = [slave.aggregator for slave in bond.slaves if slave.up and slave.aggregator is not None]
    carrying = bond.aggregator if bond.aggregator in groups else max(groups, key=groups.count, default=None)
    return [slave.name for slave in bond.slaves if slave.up and slave.aggregator not in (None, carrying)]


@node_check("NC359", Severity.WARNING, BondFacts)
def bond_degraded(node: NodeView) -> Iterator[Problem]:
    for bond in node[BondFacts].bonds:
        if defects := "; ".join(_defects(bond)):
            yield Problem(f"{bond.name}: {defects}", f"cat {quote('/proc/net/bonding/' + bond.name)}", look=True)
