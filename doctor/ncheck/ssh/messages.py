"""What the ssh program says when it fails, to the cause that it means: one table for every way of using ssh.

The lines are OpenSSH's own (7.4 to 9.x, LC_ALL=C); ssh's exit status is 255 for all of them.
"""

from __future__ import annotations

import re

from ncheck.model.evidence import Cause

# The first row that matches decides, so what explains more stands above what merely follows from it.
_WORDS: tuple[tuple[Cause, str], ...] = (
    # Access denied by pam_slurm_adopt: you have no active jobs on this node
    (Cause.SLURM_JOB_WANTED, r"pam_slurm_adopt|you have no active jobs on this node"),
    # @       WARNING: REVOKED HOST KEY DETECTED!               @
    (Cause.HOST_KEY_REVOKED, r"REVOKED HOST KEY|host key .* revoked|Host key .* is revoked"),
    # @    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
    (Cause.HOST_KEY_CHANGED, r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed"),
    # No ED25519 host key is known for [127.0.0.1]:10001 and you have requested strict checking.
    (Cause.HOST_KEY_UNKNOWN, r"host key is known for .* strict checking|Host key verification failed"),
    # Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures
    (Cause.TOO_MANY_KEYS, r"Too many authentication failures"),
    # WARNING: Your password has expired.
    (Cause.PERSON_WANTED, r"[Pp]assword (has )?expired|required to change your password|password change required"),
    # root@10.0.0.1: Permission denied (keyboard-interactive).
    (Cause.PERSON_WANTED, r"Permission denied \((?:password,)?keyboard-interactive(?:,password)?\)"),
    # root@10.0.0.1: Permission denied (publickey,password).
    (Cause.AUTH_REFUSED, r"Permission denied \(|No supported authentication methods|Authentication failed"),
    # ssh: Could not resolve hostname nosuchhost: Name or service not known
    (Cause.NAME_UNKNOWN, r"Could not resolve hostname"),
    # ssh: connect to host 10.0.0.1 port 22: Connection refused
    (Cause.REFUSED, r"connect to (?:host|address) .*: Connection refused"),
    # Connection timed out during banner exchange
    (Cause.SILENT, r"timed out during banner exchange|Timeout, server .* not responding"),
    # Bad packet length 1349676916.  |  kex_exchange_identification: client sent invalid protocol identifier
    (Cause.NOT_SSH, r"Bad packet length|[Ii]nvalid (?:SSH )?(?:protocol )?identification"),
    (Cause.NOT_SSH, r"Protocol major versions differ"),
    (Cause.NOT_SSH, r"banner line contains invalid characters|no SSH identification|banner exchange: .*invalid format"),
    # ssh: connect to host 10.0.0.1 port 22: Connection timed out
    (Cause.FILTERED, r"connect to (?:host|address) .*: (?:Connection|Operation) timed out"),
    # ssh: connect to host 10.0.0.1 port 22: No route to host    (a blackhole route: Invalid argument)
    (Cause.UNROUTABLE, r"No route to host|Network is unreachable|Host is (?:down|unreachable)"),
    (Cause.UNROUTABLE, r"connect to (?:host|address) .*: Invalid argument"),
    # Connection to 10.0.0.1 port 22 timed out   (the key exchange stopped)
    (Cause.STALLED, r"Connection to .* timed out|ssh_dispatch_run_fatal: .*(?:timed out|Connection timed out)"),
    # kex_exchange_identification: read: Connection reset by peer      (MaxStartups drops)
    (Cause.OVERLOADED, r"kex_exchange_identification:|ssh_exchange_identification:|Exceeded MaxStartups"),
    # This account is currently not available.
    (Cause.NO_SHELL, r"This account is currently not available|/nologin|shell .* not executable"),
    # Connection reset by 10.0.0.1 port 22
    (Cause.CLOSED, r"Connection (?:reset|closed) by|Connection to .* closed|Broken pipe|Connection reset by peer"),
    # Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa
    (Cause.TRANSPORT, r"Unable to negotiate|Bad configuration option|[Bb]ad owner or permissions|percent_expand"),
)


def cause_of(stderr: str) -> Cause | None:
    """Return the cause that ssh's own words mean; None where they say nothing that is known."""
    for cause, words in _WORDS:
        if re.search(words, stderr):
            return cause
    return None


def telling_line(stderr: str) -> str:
    """Return the one line of ssh's words to show: the one that the cause was read from, else the last with text."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip(" \t@")]
    cause = cause_of(stderr)
    for line in reversed(lines):
        if cause is not None and cause_of(line) is cause:
            return line.strip("@ \t")
    return lines[-1].strip("@ \t") if lines else ""
