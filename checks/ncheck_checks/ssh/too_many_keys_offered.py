"""Too many keys are offered before the right one

## What it finds
Nodes that hung up with "Too many authentication failures": the agent and ~/.ssh hold more keys than the server's
MaxAuthTries (6 by default), and the right one was not among the first.

## Why it matters
It depends on what is in the agent at the moment, so it works for one person and fails for the next.

## What to type
Name the key and keep to it: `ssh -o IdentitiesOnly=yes -i ~/.ssh/id_ed25519 NODE` shows whether it is taken; then put
`IdentityFile` and `IdentitiesOnly yes` into ~/.ssh/config for these hosts.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC121", Cause.TOO_MANY_KEYS)
def too_many_keys_offered(node: str, _login: Login) -> Problem:
    return Problem("it hung up after too many keys", f"ssh -o IdentitiesOnly=yes -i ~/.ssh/id_ed25519 {node}")
