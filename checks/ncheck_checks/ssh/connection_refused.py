"""No SSH server listens on the port

## What it finds
Nodes that are up and refuse the connection at once: no SSH server listens on that port, or a firewall rejects the
connection.

## Why it matters
mpirun, Horovod and DeepSpeed start their processes over ssh; if one node refuses it, the whole launch fails.

## What to type
On the node's console: `sudo systemctl restart ssh` (the unit is called sshd on Red Hat and SUSE). If ssh listens on
another port, as in many containers: `ncheck -p 10001 nodes.txt`; `sudo ss -tlnp` on the node shows the port.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC111", Cause.REFUSED)
def connection_refused(_node: str, login: Login) -> Problem:
    message = f"nothing listens on port {login.port}: start ssh on the node's console"
    return Problem(message, "sudo systemctl restart ssh")
