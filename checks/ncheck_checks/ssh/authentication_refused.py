"""The node refused your keys

## What it finds
Nodes whose SSH server accepted none of the keys that ncheck could offer: `ssh` says `Permission denied (publickey)`.
The evidence lists each key with its fingerprint, and the keys that could not be offered: protected by a passphrase and
not in an agent, unreadable, or refused by the agent.

## Why it matters
Launchers log in without a terminal. Without an accepted key they cannot start anything: mpirun ends with "Permission
denied (publickey,password)".

## What to type
Without a key: `ssh-keygen -t ed25519; ssh-copy-id USER@NODE` makes one and installs it. `ssh-copy-id USER@NODE`
installs a key that you have. If the user is wrong: `user@NODE` in the list, or `ncheck nodes.txt -l USER`. Add a key
with a passphrase to an agent: `eval "$(ssh-agent)"; ssh-add ~/.ssh/id_ed25519`. If the key is in ~/.ssh/authorized_keys
there already, sshd may not accept its type: `sudo sshd -T | grep -i pubkeyaccepted` on the node shows the types; make a
key of one of them, such as `ssh-keygen -t rsa -b 4096`, and install that. Inside a Slurm allocation `ncheck --via srun`
needs no ssh.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import USE_KEY, Cause, Login, login_check


@login_check("NC120", Cause.AUTH_REFUSED)
def authentication_refused(node: str, login: Login) -> Problem:
    user = login.user or "your user"
    offered = "no key was accepted" if login.offered_keys else "no key was offered"
    fix = f"ssh-copy-id {_port(login)}{node}" if login.offered_keys else USE_KEY
    look = login.fix.startswith("ssh ")  # a login by hand, to see why
    do = (login.fix or fix) == USE_KEY
    return Problem(f"{user} refused: {offered}", fix, where=HERE, look=look, do=do, summary="SSH key refused")


def _port(login: Login) -> str:
    return f"-p {login.port} " if login.port not in (0, 22) else ""
