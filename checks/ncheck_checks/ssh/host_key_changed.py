"""The host key has changed

## What it finds
Nodes whose host key differs from the one in known_hosts. The evidence names the file, the line and both fingerprints.

## Why it matters
The node was reinstalled, another machine has its address, or somebody intercepts the connection. ssh refuses to
connect, and so does every launcher.

## What to type
First verify the new key: on the node's console, `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` must print the new
fingerprint. Then remove the old one, `ssh-keygen -R NODE` (or `'[NODE]:PORT'`), and log in once by hand.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC118", Cause.HOST_KEY_CHANGED)
def host_key_changed(node: str, _login: Login) -> Problem:
    return Problem("its host key differs from the one in known_hosts", f"ssh-keygen -R {node}")
