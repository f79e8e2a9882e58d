"""The node does not answer on the SSH port

## What it finds
Nodes that did not answer a connection in time: the node is down, or a firewall or security group silently drops the
packets.

## Why it matters
A launcher waits for minutes on such a node, some launchers forever, before it prints anything.

## What to type
`ip route get NODE` shows where packets for it go: a static route that is left over, or a VPN, leads them astray.
`ping NODE`, and `sudo traceroute -T -p 22 NODE` to see where packets stop. Open the port in the node's firewall and
the cloud's security group, power the node on, or remove it from the list.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, login_check, way_to


@login_check("NC112", Cause.FILTERED)
def connection_filtered(node: str, login: Login) -> Problem:
    fix = way_to(login.address or node, login.port)
    return Problem(f"no answer on port {login.port}", fix, where=HERE, look=True)
