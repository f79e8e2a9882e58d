"""python3 is slow to start

## What it finds
Nodes on which python3 needs more than 5 s to start, measured over ncheck's connection. The interpreter lies on a slow
or busy network file system, a wrapper runs first, or start-up files of Python (sitecustomize, .pth files) do much work.

## Why it matters
ncheck waits longer for such a node, so its answers are late and not wrong. Every rank of a job starts an interpreter
too: with eight ranks on a node, and hundreds of files per import, seconds become minutes, and the time limit of a
rendezvous may end first.

## What to type
`timeout 60 python3 -X importtime -c pass` on the node shows which import takes the time. Compare with another copy,
such as `timeout 60 /usr/bin/python3 -c pass`; put the environment on a local disk, or into a container image.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import Cause, never_got_that_far

SLOW = 5.0  # seconds; a local disk needs some hundredths, a cold network file system or a busy local host one or two


@node_check("NC138", Severity.INFO, LoginFacts)
def python_slow_to_start(node: NodeView) -> Iterator[Problem | Inconclusive]:
    facts = node[LoginFacts]
    if facts.python_seconds > SLOW:
        yield Problem(
            message="python3 is slow to start",
            fix="timeout 60 python3 -X importtime -c pass",
            evidence=(f"python3 needed {facts.python_seconds:.1f} s to start on {node.name}",),
            look=True,
        )
    elif doubt := never_got_that_far(facts.login, Cause.NO_PYTHON):
        yield doubt
