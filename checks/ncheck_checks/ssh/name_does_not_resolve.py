"""A node's name does not resolve

## What it finds
Nodes whose name (or the HostName in the ssh configuration) has no address on this machine: it is not in /etc/hosts, and
the name server does not know it or does not answer.

## Why it matters
Nothing can be started on such a node from here. mpirun, torchrun and NCCL's bootstrap resolve the same names on every
node, so a name that only some machines know fails later in the job.

## What to type
`getent hosts NODE` shows what this machine knows. Correct the name in the list, add a line to /etc/hosts, or a
`HostName` to ~/.ssh/config.
"""

from __future__ import annotations

from ncheck import HERE, Problem
from ncheck.network.logins import Cause, Login, login_check


@login_check("NC110", Cause.NAME_UNKNOWN)
def name_does_not_resolve(node: str, _login: Login) -> Problem:
    return Problem("its name does not resolve on this machine", f"getent hosts {node}", where=HERE, look=True)
