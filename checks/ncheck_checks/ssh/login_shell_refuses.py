"""The login works but no command runs

## What it finds
Nodes that accept the key but run no command: the account's shell is nologin or does not exist; a start-up file exits,
hangs, reads standard input or starts another shell; or the home folder or a PAM module does not answer.

## Why it matters
mpirun starts its daemon with such a login and fails in the same way.

## What to type
`ssh NODE true; echo $?` must print 0, at once. If it prints nothing, a start-up file hangs or reads: look at ~/.bashrc,
~/.profile and /etc/profile.d on the node; what a login without a terminal does not need belongs behind
`case $- in *i*) ... ;; esac`. If it prints another number, look for `exit` there. `getent passwd USER` shows the login
shell; `sudo usermod -s /bin/bash USER` sets one.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, by_ssh, login_check


@login_check("NC124", Cause.NO_SHELL)
def login_shell_refuses(node: str, login: Login) -> Problem:
    return Problem("it accepts the login but runs no command", f"{by_ssh(node, login)} true", where=HERE, look=True)
