"""The node sends more than any answer could be

## What it finds
Nodes that sent output without end, or one answer far over what it can be: a start-up file that prints in a loop, a
tool that has gone wrong. The connection was ended; memory here was never at risk.

## Why it matters
The same output would swamp a launcher's connection, and what the node says of itself cannot be told from it.

## What to type
`ssh NODE true | head -c 300` shows what is sent. Look into ~/.bashrc and /etc/profile.d there.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import by_ssh, login_check


@login_check("NC128", Cause.FLOODED)
def node_floods_output(node: str, login: Login) -> Problem:
    return Problem("it sent more output than any answer could be", f"{by_ssh(node, login)} true | head -c 300")
