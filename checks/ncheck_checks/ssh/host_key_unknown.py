"""The node's host key is not known

## What it finds
Nodes whose SSH host key is in no known_hosts file of yours, under the name and port that are used.

## Why it matters
Launchers run ssh without a terminal: it cannot ask, so it ends with "Host key verification failed". Nothing is
trusted unseen by ncheck either.

## What to type
Log in once by hand and compare the fingerprint: `ssh -o StrictHostKeyChecking=ask NODE`. For nodes that you have just
installed yourself, all at once: `ncheck --accept-new-host-keys nodes.txt` writes unknown keys to ~/.ssh/known_hosts,
never changed ones.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC117", Cause.HOST_KEY_UNKNOWN)
def host_key_unknown(node: str, _login: Login) -> Problem:
    return Problem("its host key is not in known_hosts", f"ssh -o StrictHostKeyChecking=ask {node}")
