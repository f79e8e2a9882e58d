"""There is no route to the node

## What it finds
Nodes to which this machine has no route, or whose last router says that the host or port cannot be reached (no route
to host, network unreachable, prohibited).

## Why it matters
The node's address is on a network that this machine is not on, its link is down, or a firewall rejects us: no job can
be started there from here.

## What to type
`ip route get ADDRESS` shows where packets would leave. Look at the cable, at the address in /etc/hosts and at the
routes; from outside a private network a jump host may be needed (`ProxyJump` in ~/.ssh/config).
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC113", Cause.UNROUTABLE)
def host_unroutable(node: str, login: Login) -> Problem:
    return Problem("there is no route to it", f"ip route get {login.address or node}")
