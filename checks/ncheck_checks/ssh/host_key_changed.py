"""The node's host key has changed

## What it finds
Nodes that show another host key than known_hosts has for them. The evidence names the file and line, and both
fingerprints.

## Why it matters
The node was reinstalled, another machine has its address, or someone listens in between. ssh refuses, and so does
every launcher.

## What to type
First make sure: on the node's console `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` must show the new
fingerprint. Then take the old one out, `ssh-keygen -R NODE` (or `'[NODE]:PORT'`), and log in once by hand.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC118", Cause.HOST_KEY_CHANGED)
def host_key_changed(node: str, _login: Login) -> Problem:
    return Problem("its host key is not the one that known_hosts has", f"ssh-keygen -R {node}")
