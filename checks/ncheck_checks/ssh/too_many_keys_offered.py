"""Too many keys are offered before the right one

## What it finds
Nodes that closed the connection with "Too many authentication failures": the agent and ~/.ssh hold more keys than the
server's MaxAuthTries (6 by default), and the right one was not among the first.

## Why it matters
The result depends on the keys in the agent at the moment, so it works for one user and fails for the next.

## What to type
Select one key: `ssh -o IdentitiesOnly=yes -i ~/.ssh/id_ed25519 NODE` shows whether it is accepted; then put
`IdentityFile` and `IdentitiesOnly yes` into ~/.ssh/config for these hosts.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, by_ssh, login_check


@login_check("NC121", Cause.TOO_MANY_KEYS)
def too_many_keys_offered(node: str, login: Login) -> Problem:
    key = () if "-i" in login.options else ("-i", "~/.ssh/id_ed25519")
    fix = by_ssh(node, login, "-o", "IdentitiesOnly=yes", *key)
    return Problem("it closed the connection after too many keys", fix, where=HERE)
