"""Nothing listens on the SSH port

## What it finds
Nodes that are up and refuse the connection at once: no SSH server listens on that port, or a firewall answers in its
place.

## Why it matters
mpirun, Horovod and DeepSpeed start their processes over ssh; where it is refused, the launch fails as a whole.

## What to type
On the node's console: `sudo systemctl restart ssh` (the unit is called sshd on Red Hat and SUSE). If ssh listens
elsewhere, as in many containers: `ncheck -p 10001 nodes.txt`; `sudo ss -tlnp` on the node shows where.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC111", Cause.REFUSED)
def connection_refused(_node: str, login: Login) -> Problem:
    told = f"nothing listens on its port {login.port}: start ssh on its own console"
    return Problem(told, "sudo systemctl restart ssh")
