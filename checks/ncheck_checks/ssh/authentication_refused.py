"""The node refuses your keys

## What it finds
Nodes whose SSH server took none of the keys that could be offered. The evidence lists each with its fingerprint, and
those that could not be offered: protected by a passphrase and in no agent, unreadable, refused by the agent.

## Why it matters
Launchers log in without a terminal: without a key that is taken, they cannot start anything.

## What to type
`ssh-copy-id USER@NODE` puts your key there. If the user is wrong: `user@NODE` in the list, or `ncheck -l USER`. A key
with a passphrase goes into an agent: `ssh-add ~/.ssh/id_ed25519`.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC120", Cause.AUTH_REFUSED)
def authentication_refused(node: str, login: Login) -> Problem:
    return Problem(f"it does not let {login.user or 'you'} in", f"ssh-copy-id {node}")
