"""A node was not reached

## What it finds
Nodes on which no shell of yours answered within the time: the cause, one check a cause, stands beside it in the report
(connection-refused, host-key-changed and so on). Nothing else is known of such a node, so every check that needs it is
unknown there. Where our own side failed (the run's deadline, too few file descriptors, an overloaded sshd that dropped
us again and again) the node is not blamed: the verdict is unknown.

## Why it matters
A job that starts on all nodes starts on none when one of them cannot be reached, and mpirun waits for it without end.

## What to type
`ssh -v NODE true` shows the same failure in ssh's own words; `ncheck explain CODE` tells more of the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Inconclusive, NodeView, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.model.evidence import INFRASTRUCTURE


@node_check("NC001", Severity.ERROR, LoginFacts, explained_by="NC1")
def node_not_reached(node: NodeView) -> Iterator[Problem | Inconclusive]:
    login = node[LoginFacts].login
    if login.reached:
        return
    cause = login.cause.value if login.cause else "no cause known"
    if login.cause in INFRASTRUCTURE:
        yield Inconclusive(f"not reached, and the node is not to blame ({cause}): {login.detail}")
    else:
        yield Problem(f"not reached: {cause}", login.fix or f"ssh -v {quote(node.name)} true", (login.detail,))
