"""Bonds: several cards that work as one, by the bonding driver's own account."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Slave:
    """One card of a bond. `speed` is in Mb/s, None where the driver does not say; `aggregator` is of 802.3ad alone."""

    name: str
    up: bool
    speed: int | None = None
    aggregator: int | None = None


@dataclass(frozen=True)
class Bond:
    """One bond. `active` is the slave that carries all of an active-backup bond, and `aggregator` the group of slaves
    that carries all of an 802.3ad bond; None in other modes, or where there is none.
    """

    name: str
    mode: str  # "IEEE 802.3ad Dynamic link aggregation", "fault-tolerance (active-backup)"
    up: bool
    slaves: tuple[Slave, ...]
    active: str | None = None
    aggregator: int | None = None


@dataclass(frozen=True)
class BondFacts:
    """Every bond of the node's network namespace."""

    bonds: tuple[Bond, ...]
