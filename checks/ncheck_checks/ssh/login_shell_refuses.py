"""The login works and no command can be run

## What it finds
Nodes that accept the key and then run nothing: the account's shell is nologin or not there, a start-up file exits or
hangs, a forced command answers in place of the shell.

## Why it matters
mpirun's daemon is started by exactly such a login, and ends the same way.

## What to type
`getent passwd USER` on the node shows the shell; `sudo usermod -s /bin/bash USER` sets one. For a start-up file, look
for `exit` in ~/.bashrc: `ssh NODE true; echo $?` must print 0.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import by_ssh, login_check


@login_check("NC124", Cause.NO_SHELL)
def login_shell_refuses(node: str, login: Login) -> Problem:
    return Problem("it accepts the login and runs no command", f"{by_ssh(node, login)} true")
