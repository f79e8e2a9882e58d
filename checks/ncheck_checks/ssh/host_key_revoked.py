"""The node shows a revoked host key

## What it finds
Nodes whose host key is marked @revoked in a known_hosts file: it is known to have leaked, often because it came with
a public image.

## Why it matters
ssh refuses such a key whatever else is configured: anyone may hold it and pose as the node.

## What to type
Give the node keys of its own, on its console: `sudo rm /etc/ssh/ssh_host_*_key && sudo ssh-keygen -A && sudo
systemctl restart ssh`.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC119", Cause.HOST_KEY_REVOKED)
def host_key_revoked(_node: str, _login: Login) -> Problem:
    fix = "sudo rm /etc/ssh/ssh_host_*_key && sudo ssh-keygen -A && sudo systemctl restart ssh"
    return Problem("its host key is revoked: make it new ones on the node's own console", fix)
