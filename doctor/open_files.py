"""The head's own limit of open files, raised to what a fan-out needs."""

from __future__ import annotations

import resource
from contextlib import suppress

_OURS = 256  # what Python, the terminal and the libraries hold open besides


def allow_open_files(needed: int) -> None:
    """Raise the soft limit to what is needed, as far as the hard limit lets us; never lower it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = needed + _OURS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
