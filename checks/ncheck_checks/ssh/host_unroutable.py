"""There is no route to the node

## What it finds
Nodes to which this machine has no route, or for which a router reports that the host or port is unreachable (no route
to host, network unreachable, prohibited).

## Why it matters
The node's address is in a network that this machine cannot reach, its link is down, or a firewall rejects the
connection: no job can be started there from here.

## What to type
`ip route get ADDRESS` shows the route. Check the cable, the address in /etc/hosts and the routes; from outside a
private network a jump host may be needed (`ProxyJump` in ~/.ssh/config).
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC113", Cause.UNROUTABLE)
def host_unroutable(node: str, login: Login) -> Problem:
    return Problem("there is no route to it", f"ip route get {login.address or node}", where=HERE, look=True)
