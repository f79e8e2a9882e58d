"""The login works but no command runs

## What it finds
Nodes that accept the key but run no command: the account's shell is nologin or does not exist, a start-up file exits or
hangs, or a forced command replaces the shell.

## Why it matters
mpirun starts its daemon with such a login and fails in the same way.

## What to type
`getent passwd USER` on the node shows the shell; `sudo usermod -s /bin/bash USER` sets one. For a start-up file, look
for `exit` in ~/.bashrc: `ssh NODE true; echo $?` must print 0.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, by_ssh, login_check


@login_check("NC124", Cause.NO_SHELL)
def login_shell_refuses(node: str, login: Login) -> Problem:
    return Problem("it accepts the login but runs no command", f"{by_ssh(node, login)} true", where=HERE, look=True)
