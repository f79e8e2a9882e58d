"""What this machine is to a line that is typed on it: its own addresses, its user, and which variables are set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncheck.settings import Settings


def head_of(settings: Settings, environ: Mapping[str, str]) -> Head | None:
    """Return this machine; None where a line is typed elsewhere, in a container, or where it does not tell.

    The head of a rehearsal is no part of the cluster that it shows.
    """
    if settings.rehearsal or settings.environment.enter or settings.environment.rsh:
        return None
    try:
        from ncheck.agent.answers.getifaddrs import getifaddrs

        told = getifaddrs()
    except (ImportError, OSError):
        return None
    held = {str(address["ip"]): name for name, (_, addresses) in told.items() for address in addresses}
    return Head(held, frozenset(environ), root=os.geteuid() == 0)


@dataclass(frozen=True)
class Head:
    """`interfaces` are its interfaces' names by IP address, `variables` the names that its environment sets; `root`
    tells whether its user is root, as whom mpirun does not start unasked.
    """

    interfaces: Mapping[str, str]
    variables: frozenset[str] = frozenset()
    root: bool = False
