"""What is wrong with a bond that is up: it works with less than it is made of."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.model.facts import Bond


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
