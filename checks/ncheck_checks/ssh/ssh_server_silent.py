"""The SSH server accepts connections but does not answer

## What it finds
Nodes whose kernel accepts the connection but whose SSH banner does not arrive in time: sshd is frozen or starved, the
root disk hangs, or the machine is out of memory.

## Why it matters
Plain ssh waits forever on such a node, and so does mpirun: this is the usual cause of a launch that hangs silently.

## What to type
On the node's console: `sudo systemctl restart ssh`, and `sudo dmesg -T | tail` for the reason. If the console does not
respond either, reboot the node.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.network.logins import RESTART_SSH, Cause, Login, login_check


@login_check("NC115", Cause.SILENT)
def ssh_server_silent(_node: str, _login: Login) -> Problem:
    message = "its SSH server accepts connections but does not answer: restart it on the node's console"
    return Problem(message, RESTART_SSH, summary="SSH server does not answer")
