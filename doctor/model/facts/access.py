"""Getting there: the listing, the login, who answered, its clock, and its own ssh to the other nodes."""

from __future__ import annotations

from dataclasses import dataclass

from doctor.model.evidence import Cause, Login


@dataclass(frozen=True)
class ListingFacts:
    """Where the node was listed, and with how many slots."""

    places: tuple[str, ...]
    slots: int | None = None


@dataclass(frozen=True)
class LoginFacts:
    """How the login went; always there, for nodes that were not reached above all.

    `noise` is what the node's start-up files printed on stdout, cleaned for a terminal, at most a few lines.
    """

    login: Login
    noise: str = ""


@dataclass(frozen=True)
class IdentityFacts:
    """Who answered. The same boot_id in the same network namespace is the same machine, whatever it is called."""

    host_name: str
    boot_id: str
    network_namespace: str
    user_id: int | None

    @property
    def machine(self) -> tuple[str, str] | None:
        """What no other machine has; None where a part of it could not be read."""
        return (self.boot_id, self.network_namespace) if self.boot_id and self.network_namespace else None


@dataclass(frozen=True)
class ClockFacts:
    """Seconds that the node's clock is ahead of ours, and half the round trip that it was measured by."""

    offset: float
    uncertainty: float


@dataclass(frozen=True)
class PeerSsh:
    """One edge: this node ran `ssh target true` in batch mode. `cause` is None when it worked."""

    target: str
    cause: Cause | None
    detail: str = ""


@dataclass(frozen=True)
class PeerSshFacts:
    """The edges that this node tried: all others up to 16 nodes, else the edges of Open MPI's tree."""

    peers: tuple[PeerSsh, ...]
