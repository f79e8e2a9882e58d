"""The server on the port is not an SSH server

## What it finds
Nodes on which another program listens on that port: a web server, a training process that took the port, or a proxy.

## Why it matters
Every launcher that uses ssh fails there, and its message seldom names the cause.

## What to type
`nc -v NODE PORT` shows what it sends. Give the right port: `ncheck -p 22 nodes.txt`; `sudo ss -tlnp` on the node names
the process.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC114", Cause.NOT_SSH)
def not_an_ssh_server(node: str, login: Login) -> Problem:
    return Problem(
        f"the server on port {login.port} does not speak SSH", f"nc -v {node} {login.port}", where=HERE, look=True
    )
