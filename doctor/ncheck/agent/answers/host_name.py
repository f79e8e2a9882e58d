"""What this node calls itself, and what that name leads to here."""

import socket

from ncheck.agent.answers.names import resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

_PATIENCE = 5.0  # seconds: a program that looks its own name up waits as long, or longer
READS = ("gethostname(2), and getaddrinfo(3) of that name",)


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"name", "leads_to": as of `names`}."""
    name = socket.gethostname()
    return {"name": name, "leads_to": resolved([name], min(timeout, _PATIENCE))[name]}
