"""There is no Python on the node that could look at it

## What it finds
Nodes that can be logged in to and that have no python3 of version 3.6 or newer, neither on the PATH of a plain
(non-interactive) login nor where it usually lies, or one that is broken. ncheck's own questions are asked by such a
Python; the job's may be another.

## Why it matters
Nothing else about the node can be told, and a training job in Python will not start there either, unless its
environment is entered first: by a module, in a container.

## What to type
`sudo apt-get install python3` on the node; or say where Python is: `ncheck --python /opt/conda/bin/python3 nodes.txt`,
or how the job's environment is entered: `ncheck --enter 'docker exec -i train' nodes.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.model.evidence import Cause
from ncheck.network.logins import never_got_that_far


@node_check("NC125", Severity.ERROR, LoginFacts, blocks_plan=True)
def python_missing(node: NodeView) -> Iterator[Problem | Inconclusive]:
    login = node[LoginFacts].login
    if login.cause is Cause.NO_PYTHON:
        yield Problem(
            message=f"{node.name} has no python3 that runs (3.6 or newer is needed)",
            fix="sudo apt-get install python3",
            evidence=(login.detail,),
        )
    elif doubt := never_got_that_far(login, Cause.NO_PYTHON):
        yield doubt
