"""Getting there: the listing, the login, who answered, its clock, and its own ssh to the other nodes."""

from __future__ import annotations

from dataclasses import dataclass

from ncheck.facts.definition import Fact
from ncheck.model.evidence import Evidence, Login
from ncheck.model.fact import Unread
from ncheck.text import printable


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


NOISE_LINES = 4


def _listing(evidence: Evidence) -> ListingFacts:
    return ListingFacts(places=evidence.places, slots=evidence.slots)


def _login(evidence: Evidence) -> LoginFacts:
    noise = evidence.greeting.noise if evidence.greeting else ""
    lines = [printable(line) for line in noise.splitlines() if line.strip()]
    return LoginFacts(evidence.login, "\n".join(lines[:NOISE_LINES]))


def _identity(evidence: Evidence) -> IdentityFacts | Unread:
    """Read the greeting. Without one nobody knows who answered, and no check may guess."""
    greeting = evidence.greeting
    if greeting is None:
        cause = evidence.login.cause
        return Unread(f"not reached ({cause.value})" if cause else "the node's shell told nothing of itself")
    return IdentityFacts(greeting.host_name, greeting.boot_id, greeting.network_namespace, greeting.user_id)


FACTS = (
    Fact(ListingFacts, (), _listing),
    Fact(LoginFacts, (), _login),
    Fact(IdentityFacts, (), _identity),
)
