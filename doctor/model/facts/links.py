"""Node to node over TCP: where a node listened, whom it reached from which address, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class LinkCause(str, Enum):
    """Why a link does not carry data."""

    REFUSED = "refused"  # RST: something on the way answers for the listener that is there
    FILTERED = "filtered"  # no answer to SYN within the time: packets are dropped
    UNROUTABLE = "unroutable"  # no route, host or network unreachable
    LARGE_LOST = "large-lost"  # it connects and small messages pass, large ones from here never arrive
    LARGE_LOST_BACK = "large-lost-back"  # the same, of what comes back
    CUT = "cut"  # it connected and was reset or closed in the middle
    STRANGER = "stranger"  # something else answered at that address
    UNTRIED = "untried"  # there was no time left: infrastructure


@dataclass(frozen=True)
class Link:
    """One way: from an address of this node to an address and port of another. `subnet` is "" where routers join them.

    `port` is 0 for the mesh's own listener, else the port that the job needs there.
    """

    source: str
    target: str  # the other node's name
    address: str
    subnet: str
    cause: LinkCause
    detail: str = ""
    port: int = 0


@dataclass(frozen=True)
class Reach:
    """How many addresses of others one address of this node reached in one subnet."""

    subnet: str
    source: str
    tried: int
    reached: int


@dataclass(frozen=True)
class LinkFacts:
    """All that this node tried: how many went well, by subnet and own address, and each that did not.

    `tried_to` are the nodes that were tried at all: silence of others about them says nothing.
    """

    reaches: tuple[Reach, ...]
    broken: tuple[Link, ...] = ()
    tried_to: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PortState:
    """One port that the job needs on this node, as a bind of it went: `taken` by whom ("python3 (pid 4711) of ada")."""

    port: int
    free: bool
    taken_by: str = ""  # "" where this user may not see whose it is
    error: str = ""  # why it could not be tried otherwise: permission denied below 1024
    assumed: bool = False  # nobody named this port, nor a launcher: it is the default of one that may be used


@dataclass(frozen=True)
class ListenFacts:
    """Where the node listens for the others, by its own addresses, and why it could not elsewhere."""

    ports: Mapping[str, int]
    failed: Mapping[str, str] = field(default_factory=dict)
    needed: tuple[PortState, ...] = ()
