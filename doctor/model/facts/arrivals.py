"""What the kernel would do with packets of other nodes, by its own routing: asked, and nothing was sent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Arrival:
    """A packet from `source`, which is another node's address, that comes in by `interface` for its `address`."""

    interface: str
    address: str
    source: str
    taken: bool  # False: the reverse path filter drops it


@dataclass(frozen=True)
class ArrivalFacts:
    """One arrival for each own address and each subnet that other nodes would send to it from."""

    arrivals: tuple[Arrival, ...]
