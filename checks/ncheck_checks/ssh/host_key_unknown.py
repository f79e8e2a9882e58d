"""The host key is unknown

## What it finds
Nodes whose SSH host key is not in your known_hosts files under the name and port that are used.

## Why it matters
Launchers run ssh without a terminal, so ssh cannot ask and stops with "Host key verification failed". ncheck does not
trust unknown keys either.

## What to type
Log in once by hand and compare the fingerprint: `ssh -o StrictHostKeyChecking=ask NODE`. For nodes that you have just
installed yourself, accept all at once: `ncheck --accept-new-host-keys nodes.txt` adds unknown keys to
~/.ssh/known_hosts, but never changed ones.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, by_ssh, login_check


@login_check("NC117", Cause.HOST_KEY_UNKNOWN)
def host_key_unknown(node: str, login: Login) -> Problem:
    fix = by_ssh(node, login, "-o", "StrictHostKeyChecking=ask")
    return Problem("its host key is not in known_hosts", fix, where=HERE)
