"""The node refused your keys

## What it finds
Nodes whose SSH server accepted none of the keys that ncheck could offer. The evidence lists each key with its
fingerprint, and the keys that could not be offered: protected by a passphrase and not in an agent, unreadable, or
refused by the agent.

## Why it matters
Launchers log in without a terminal. Without an accepted key they cannot start anything.

## What to type
`ssh-copy-id USER@NODE` installs your key there. If the user is wrong: `user@NODE` in the list, or `ncheck -l USER`. Add
a key with a passphrase to an agent: `ssh-add ~/.ssh/id_ed25519`.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC120", Cause.AUTH_REFUSED)
def authentication_refused(node: str, login: Login) -> Problem:
    return Problem(f"{login.user or 'your user'} refused: no key was accepted", f"ssh-copy-id {node}")
