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

from shlex import quote

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC118", Cause.HOST_KEY_CHANGED)
def host_key_changed(node: str, login: Login) -> Problem:
    known_as = node if login.port in (0, 22) else quote(f"[{login.address or node}]:{login.port}")
    look = login.fix.startswith("ssh ")  # a login by hand, to see which key is offered
    return Problem(
        "its host key differs from the one in known_hosts", f"ssh-keygen -R {known_as}", where=HERE, look=look,
        summary="host key changed",
    )  # fmt: skip
