"""What servers and ssh itself say in words, and what is meant by it."""

from __future__ import annotations

import re

from doctor.model.evidence import Cause

# One row a meaning; the first that matches stands. Each is a real line of a real program.
_MEANINGS: tuple[tuple[re.Pattern[str], Cause], ...] = (
    # Access denied by pam_slurm_adopt: you have no active jobs on this node
    # Access denied: user alice (uid=1000) has no active jobs on this node.
    (re.compile(r"no active jobs on this node|pam_slurm", re.IGNORECASE), Cause.SLURM_JOB_WANTED),
    # Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures
    (re.compile(r"too many authentication failures", re.IGNORECASE), Cause.TOO_MANY_KEYS),
    # WARNING: Your password has expired.
    # You are required to change your password immediately (administrator enforced).
    # Password change required but no TTY available.
    (
        re.compile(r"password (?:has|is) expired|required to change your password|password change req", re.IGNORECASE),
        Cause.PERSON_WANTED,
    ),
    # This account is currently not available.
    # /usr/sbin/nologin: No such file or directory
    (re.compile(r"account is (currently )?not available|nologin", re.IGNORECASE), Cause.NO_SHELL),
    # System is booting up. Unprivileged users are not permitted to log in yet.
    # Your account has expired; please contact your system administrator.
    (re.compile(r"not permitted to log in|account has expired|access denied", re.IGNORECASE), Cause.AUTH_REFUSED),
)


def cause_of_words(text: str) -> Cause | None:
    """Return what a server's words mean, None where they mean nothing that is known here."""
    return next((cause for pattern, cause in _MEANINGS if pattern.search(text)), None)
