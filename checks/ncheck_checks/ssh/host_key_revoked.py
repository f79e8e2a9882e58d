"""The host key is revoked

## What it finds
Nodes whose host key is marked @revoked in a known_hosts file: the key is known to have leaked, often as part of a
public image.

## Why it matters
ssh always refuses such a key: anyone may have it and impersonate the node.

## What to type
Create new host keys, on the node's console:
`sudo rm /etc/ssh/ssh_host_*_key* && sudo ssh-keygen -A && (sudo systemctl restart ssh || sudo systemctl restart sshd)`.
Then let each machine that knows the old key forget it and learn the new one: `ssh-keygen -R NODE` and
`ssh-keyscan NODE >> ~/.ssh/known_hosts`; otherwise the next run reports host-key-changed. `ssh-keygen -lf` on the
node's console shows the fingerprint to compare. The line with @revoked stays.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.network.logins import NEW_HOST_KEYS, Cause, Login, login_check


@login_check("NC119", Cause.HOST_KEY_REVOKED)
def host_key_revoked(_node: str, _login: Login) -> Problem:
    message = "its host key is revoked: create new keys on the node's console, then let this machine learn them"
    return Problem(message, NEW_HOST_KEYS, summary="host key revoked")
