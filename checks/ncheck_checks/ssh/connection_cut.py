"""The connection was lost during the run

## What it finds
Nodes whose connection ended before all answers arrived: the link went down, sshd or the node was restarted, the agent's
Python was killed (out of memory), or the server closed the session without a reason. Also nodes from which nothing came
for 15 s, not even the answer to a ping: the agent's Python was stopped, or the node froze. The run goes on without
them. Earlier answers are kept and judged.

## Why it matters
A connection that does not last a few seconds does not last a training run.

## What to type
Look at the node: `uptime`, `sudo dmesg -T | tail -50`, `sudo journalctl -u ssh -n 50`; then run `ncheck` again for that
node alone.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, by_ssh, login_check


@login_check("NC127", Cause.CLOSED)
def connection_cut(node: str, login: Login) -> Problem:
    return Problem("it stopped answering during the run", f"{by_ssh(node, login)} uptime", where=HERE, look=True)
