"""The SSH server accepts connections and says nothing

## What it finds
Nodes whose kernel accepts the connection while no SSH banner comes within the time: sshd is frozen or starved, the
root disk hangs, or the machine is out of memory.

## Why it matters
Plain ssh waits for ever on such a node, and so does mpirun: the usual cause of a launch that hangs without a message.

## What to type
On the node's console: `sudo systemctl restart ssh`, and `sudo dmesg -T | tail` for the reason. If it does not answer
there either, reboot it.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC115", Cause.SILENT)
def ssh_server_silent(_node: str, _login: Login) -> Problem:
    told = "its SSH server accepts connections and does not speak: restart it on the node's own console"
    return Problem(told, "sudo systemctl restart ssh")
