"""What names lead to, by each node's own resolver: its own host name, and the names of the listed nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Resolved:
    """What a name leads to, in the resolver's order, which is the order in which a program tries the addresses.

    No address: `error` holds the resolver's words. `late`: the resolver had not answered when the time was over.
    """

    addresses: tuple[str, ...] = ()
    error: str = ""
    late: bool = False


@dataclass(frozen=True)
class HostNameFacts:
    """The node's own name (gethostname) and what it leads to on the node itself."""

    name: str
    leads_to: Resolved


@dataclass(frozen=True)
class NameFacts:
    """What the names of listed nodes lead to on this node: those that a launch would look up here."""

    names: Mapping[str, Resolved]
