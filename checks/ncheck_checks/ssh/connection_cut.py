"""The connection was cut before all was answered

## What it finds
Nodes whose connection ended in the midst: the link went down, sshd or the node was restarted, the agent's Python was
killed (out of memory), or the server ended the login without a reason. What was answered before is kept and judged.

## Why it matters
A connection that does not last a few seconds does not last a training run.

## What to type
Look at the node: `uptime`, `sudo dmesg -T | tail -50`, `sudo journalctl -u ssh -n 50`; then run `ncheck` again for that
node alone.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import by_ssh, login_check


@login_check("NC127", Cause.CLOSED)
def connection_cut(node: str, login: Login) -> Problem:
    return Problem("the connection was cut", f"{by_ssh(node, login)} uptime")
