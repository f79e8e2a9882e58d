"""A node's name does not resolve

## What it finds
Nodes whose name (or the HostName that ssh configuration gives it) has no address here: it is not in /etc/hosts, and
the name server does not know it or does not answer.

## Why it matters
Nothing can be started on such a node from here. mpirun, torchrun and NCCL's own bootstrap resolve the same names, on
every node, so a name that only some machines know fails the job later.

## What to type
`getent hosts NODE` shows what this machine knows. Correct the name in the list, add a line to /etc/hosts, or a
`HostName` to ~/.ssh/config.
"""

from __future__ import annotations

from ncheck import Problem
from ncheck.model.evidence import Cause, Login
from ncheck.network.logins import login_check


@login_check("NC110", Cause.NAME_UNKNOWN)
def name_does_not_resolve(node: str, _login: Login) -> Problem:
    return Problem("its name has no address here", f"getent hosts {node}")
