"""The node sends endless output

## What it finds
Nodes that sent output without end, or an answer far beyond its maximum size: a start-up file prints in a loop, or a
tool misbehaves. ncheck closed the connection; its memory is limited.

## Why it matters
The same output would flood a launcher's connection, and it cannot be separated from the node's answers.

## What to type
`ssh NODE true 2>&1 | head -c 300` shows the output. Look into ~/.bashrc and /etc/profile.d there.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, by_ssh, login_check


@login_check("NC128", Cause.FLOODED)
def node_floods_output(node: str, login: Login) -> Problem:
    fix = f"{by_ssh(node, login)} true 2>&1 | head -c 300"
    return Problem("it sent more output than any answer can have", fix, where=HERE, look=True)
