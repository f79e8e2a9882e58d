"""The SSH login stalls

## What it finds
Nodes that send an SSH banner and then fall silent during the key exchange or the login, or that log in and answer only
what is small. The packets of the key exchange are the first large ones, and those that start ncheck's agent are larger:
if they are lost, an MTU on the path is smaller than both ends assume. A node that hangs looks the same.

## Why it matters
The same fault stalls NCCL and MPI: small messages pass, large ones never arrive, and the job hangs. ssh's
ConnectTimeout does not end such a login.

## What to type
`ping -M do -s 1472 -c 3 ADDRESS` fails if the path allows less than 1500 bytes; with an MTU of 9000, try `-s 8972`.
Find the interface or switch with the smaller MTU (`ip link show`), or set the same MTU on all:
`sudo ip link set eth0 mtu 1500`.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC116", Cause.STALLED)
def ssh_login_stalls(node: str, login: Login) -> Problem:
    fix = f"ping -M do -s 1472 -c 3 {login.address or node}"
    return Problem("the login stalls after the SSH banner", fix, where=HERE, look=True)
