"""The host key has changed

## What it finds
Nodes whose host key differs from the one in known_hosts. The evidence names the file, the line and both fingerprints.

## Why it matters
The node was reinstalled, another machine has its address, or somebody intercepts the connection. ssh refuses to
connect, and so does every launcher.

## What to type
First compare: on the node's own console, not over ssh, `cat /etc/ssh/ssh_host_*_key.pub | ssh-keygen -lf -` must print
the fingerprint that was presented. If it does not, another machine answers at the node's address. If it does, remove
the old key, `ssh-keygen -R NODE` (or `'[NODE]:PORT'`), and log in once by hand.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.network.logins import SHOW_HOST_KEYS, Cause, Login, login_check


@login_check("NC118", Cause.HOST_KEY_CHANGED)
def host_key_changed(_node: str, _login: Login) -> Problem:
    message = "its host key differs from the one in known_hosts: it was reinstalled, or another machine answers"
    return Problem(message, SHOW_HOST_KEYS, look=True, summary="host key changed")
