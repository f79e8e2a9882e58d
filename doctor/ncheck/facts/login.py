"""The node's entry in the inventory, its login, and the machine that answered."""

from __future__ import annotations

from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.cluster import LoginFacts
from ncheck.model.evidence import Cause, Evidence, Greeting
from ncheck.model.fact import Unread
from ncheck.text import printable

__all__ = ["FACTS", "NOISE_LINES", "ONE_CONNECTION", "IdentityFacts", "ListingFacts", "LoginFacts"]


@dataclass(frozen=True)
class ListingFacts:
    """Where the inventory lists the node. `places`: "nodes.txt:3"; `slots`: how many ranks it may have there, None
    where the list does not say it.
    """

    places: tuple[str, ...]
    slots: int | None = None


@dataclass(frozen=True)
class IdentityFacts:
    """The machine that answered. The same boot_id and network namespace are the same machine, whatever its name."""

    host_name: str
    boot_id: str
    network_namespace: str  # "net:[4026531840]"
    user_id: int | None  # the number of the user that logged in

    @property
    def machine(self) -> tuple[str, str] | None:
        """What identifies the machine; None if a part of it could not be read."""
        return (self.boot_id, self.network_namespace) if self.boot_id and self.network_namespace else None


NOISE_LINES = 4


def _listing(evidence: Evidence) -> ListingFacts:
    return ListingFacts(places=evidence.places, slots=evidence.slots)


def _login(evidence: Evidence) -> LoginFacts:
    greeting = evidence.greeting or Greeting()
    lines = [printable(line) for line in greeting.noise.splitlines() if line.strip()]
    noise = "\n".join(lines[:NOISE_LINES])
    python = printable(greeting.python) if evidence.login.cause is Cause.NO_PYTHON else ""
    old = printable(greeting.old_python)
    return LoginFacts(evidence.login, noise, greeting.python_seconds, greeting.shell_seconds, python, old)


def _identity(evidence: Evidence) -> IdentityFacts | Unread:
    """Read the greeting. Without one, the machine is unknown, and no check may guess."""
    greeting = evidence.greeting
    if greeting is None:
        cause = evidence.login.cause
        return Unread(f"not reached ({cause.value})" if cause else "the node's shell sent no greeting")
    host_name = greeting.host_name if greeting.host_name.isprintable() else ""  # it becomes part of commands
    return IdentityFacts(host_name, greeting.boot_id, greeting.network_namespace, greeting.user_id)


FACTS = (
    Fact(ListingFacts, (), _listing),
    Fact(LoginFacts, (), _login),
    Fact(IdentityFacts, (), _identity),
)
ONE_CONNECTION = "one connection"  # what control-path-shared explains: all names lead to one machine
