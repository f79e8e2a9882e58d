"""The host key is revoked

## What it finds
Nodes whose host key is marked @revoked in a known_hosts file: the key is known to have leaked, often as part of a
public image.

## Why it matters
ssh always refuses such a key: anyone may have it and impersonate the node.

## What to type
Create new host keys, on the node's console:
`sudo rm /etc/ssh/ssh_host_*_key && sudo ssh-keygen -A && sudo systemctl restart ssh`.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC119", Cause.HOST_KEY_REVOKED)
def host_key_revoked(_node: str, _login: Login) -> Problem:
    fix = "sudo rm /etc/ssh/ssh_host_*_key && sudo ssh-keygen -A && sudo systemctl restart 'ssh*'"
    return Problem("its host key is revoked: create new keys on the node's console", fix, summary="host key revoked")
