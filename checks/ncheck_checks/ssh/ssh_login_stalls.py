"""The SSH login stalls half way

## What it finds
Nodes that greet and then go quiet in the key exchange or the login. The packets of the key exchange are the first
large ones: where they are lost, an MTU on the way is smaller than both ends believe. A node that hangs looks the
same.

## Why it matters
What stalls a login stalls NCCL and MPI too: small messages pass, large ones never arrive, and the job hangs. Not even
ssh's ConnectTimeout ends it.

## What to type
`ping -M do -s 1472 -c 3 ADDRESS` fails where the path takes less than 1500 bytes. Find the interface or switch with
the smaller MTU (`ip link show`), or set the same MTU on all: `sudo ip link set eth0 mtu 1500`.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC116", Cause.STALLED)
def ssh_login_stalls(node: str, login: Login) -> Problem:
    return Problem("the login stalls after the SSH banner", f"ping -M do -s 1472 -c 3 {login.address or node}")
