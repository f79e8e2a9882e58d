"""Connections to the node are dropped

## What it finds
Nodes that do not answer a connection at all within the time: the node is down, or a firewall or security group drops
the packets without a word.

## Why it matters
A launcher that meets such a node waits for minutes, some without end, before it says anything.

## What to type
`ping NODE`, and `sudo traceroute -T -p 22 NODE` to see where packets stop. Open the port in the node's firewall and
the cloud's security group, power the node on, or take it off the list.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC112", Cause.FILTERED)
def connection_filtered(node: str, login: Login) -> Problem:
    return Problem(
        f"it does not answer on port {login.port}", f"sudo traceroute -T -p {login.port} {login.address or node}"
    )
