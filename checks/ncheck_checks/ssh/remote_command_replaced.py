"""The login works but the remote command is lost

## What it finds
Nodes on which `ssh NODE COMMAND` starts another program than COMMAND: ~/.bashrc, ~/.zshenv or ~/.cshrc replaces the
shell (`exec zsh`, `newgrp`), or sshd runs a forced command (`ForceCommand /bin/bash`, or `command=` in
authorized_keys). That shell reads standard input and answers, so an interactive login looks healthy. The evidence names
the shell. With `--rsh`, the given command does not run its arguments.

## Why it matters
mpirun starts its daemon on the node with such a command. It never runs, mpirun waits, and no message says why. scp,
rsync and every launcher over SSH fail in the same way. `ssh NODE true` is no proof: without input, the other shell ends
with exit status 0.

## What to type
`ssh NODE echo works` must print `works`. In the start-up file, replace the shell in interactive logins only:
`case $- in *i*) exec zsh ;; esac`, or set the login shell: `chsh -s /bin/zsh`. For a forced command, look on the node:
`sudo sshd -T -C user=USER | grep -i forcecommand` and `grep -n command= ~/.ssh/authorized_keys`; end a wrapper with
`exec $SHELL -c "$SSH_ORIGINAL_COMMAND"`.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, by_ssh, login_check


@login_check("NC129", Cause.COMMAND_REPLACED)
def remote_command_replaced(node: str, login: Login) -> Problem:
    return Problem(
        "it accepts the login but does not run the command", f"{by_ssh(node, login)} echo works", where=HERE, look=True
    )
