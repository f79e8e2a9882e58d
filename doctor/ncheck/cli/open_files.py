"""The limit of open files of this process: a fan-out over many nodes needs more than the usual soft limit of 1024."""

from __future__ import annotations

import resource
from contextlib import suppress


def allow_open_files() -> None:
    """Raise the soft limit of open files to the hard one: for the command that fans out, never for a library."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
