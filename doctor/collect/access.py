"""The listing, the login and who answered: there for every node, whatever could be asked of it."""

from __future__ import annotations

from doctor.collect.reader import Reader
from doctor.model.evidence import Evidence
from doctor.model.fact import Unread
from doctor.model.facts import IdentityFacts, ListingFacts, LoginFacts
from doctor.printable import printable

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


READERS = (
    Reader(ListingFacts, (), _listing),
    Reader(LoginFacts, (), _login),
    Reader(IdentityFacts, (), _identity),
)
