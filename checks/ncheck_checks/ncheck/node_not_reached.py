"""A node is unreachable

## What it finds
Nodes on which ncheck got no shell in time. A separate check names the cause (connection-refused, host-key-changed and
so on). Nothing else is known about such a node, so every check that needs it is not run there. If the failure is on
ncheck's side (the run's deadline, too few file descriptors, or an overloaded sshd that dropped the connection again and
again), the node is not blamed: the verdict is unknown. A node that the deadline left no time to try is "not tried".

## Why it matters
A job that needs all nodes does not start if one of them is unreachable, and mpirun waits for it forever.

## What to type
`ssh -v NODE true` shows the same failure in ssh's own words; `ncheck explain CODE` explains the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import HERE, Inconclusive, NodeView, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import INFRASTRUCTURE, Cause, by_ssh


@node_check("NC001", Severity.ERROR, LoginFacts, blocks_plan=True, says_unreached=True)
def node_not_reached(node: NodeView) -> Iterator[Problem | Inconclusive]:
    login = node[LoginFacts].login
    if login.reached:
        return
    cause = login.cause.value if login.cause else "unknown cause"
    if login.cause is Cause.NOT_TRIED:
        yield Inconclusive(login.detail)
    elif login.cause in INFRASTRUCTURE:
        yield Inconclusive(f"unreachable, but the node is not at fault ({cause}): {login.detail}")
    else:
        yield Problem(
            f"unreachable: {cause}",
            login.fix or f"{by_ssh(quote(node.name), login, '-v')} true",
            (login.detail,),
            where=HERE,
            look=True,
        )
