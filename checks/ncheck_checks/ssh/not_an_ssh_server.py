"""What listens there is no SSH server

## What it finds
Nodes on which something listens on that port and does not speak SSH: a web server, a training process that took the
port, a proxy.

## Why it matters
Every launcher that uses ssh fails there, and its message seldom says why.

## What to type
`nc -v NODE PORT` shows what it says. Give the right port: `ncheck -p 22 nodes.txt`; `sudo ss -tlnp` on the node names
the process.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC114", Cause.NOT_SSH)
def not_an_ssh_server(node: str, login: Login) -> Problem:
    return Problem(f"what listens on its port {login.port} does not speak SSH", f"nc -v {node} {login.port}")
