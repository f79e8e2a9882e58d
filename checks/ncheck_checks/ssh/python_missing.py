"""The node has no usable Python

## What it finds
Nodes that accept the login but have no working python3 of version 3.6 or newer, neither on the PATH of a
non-interactive login nor in the usual places. ncheck's agent needs such a Python; the job's Python may be another one.
If a python3 is installed and does not run, the evidence says how it failed: it hangs, it crashes (a broken library, a
sitecustomize that fails), or a limit of the login leaves too few processes or too little memory (`ulimit -u`, `-v`).

## Why it matters
Nothing else can be read from the node. A training job in Python will not start there either, unless its environment is
entered first, by a module or in a container.

## What to type
`sudo apt-get install python3` on the node; or give its path: `ncheck --python /opt/conda/bin/python3 nodes.txt`, or how
to enter the job's environment: `ncheck --enter 'docker exec -i train' nodes.txt`.

Where the distribution's own is too old (3.5 on Ubuntu 16.04 and Debian 9), its package mends nothing: install another
one beside it, and give its path.

If it is installed and does not run: `ulimit -a; timeout 20 python3 -I -v -c pass 2>&1 | tail -n 5` on the node shows
the limits of the login, and what python3 did last.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Inconclusive, NodeView, Problem, Severity, node_check
from ncheck.facts.login import LoginFacts
from ncheck.network.logins import Cause, never_got_that_far


@node_check("NC125", Severity.ERROR, LoginFacts, blocks_plan=True)
def python_missing(node: NodeView) -> Iterator[Problem | Inconclusive]:
    facts = node[LoginFacts]
    login = facts.login
    if login.cause is Cause.NO_PYTHON and facts.python:
        python = facts.python if facts.python.startswith("/") else "python3"
        yield Problem(
            message=f"python3 is installed on {node.name} and does not run",
            fix=f"ulimit -a; timeout 20 {quote(python)} -I -v -c pass 2>&1 | tail -n 5",
            evidence=(login.detail,),
            look=True,
            summary="python3 does not run",
        )
    elif login.cause is Cause.NO_PYTHON and facts.old_python:
        yield Problem(  # the package of such a distribution is the same again: Ubuntu 16.04 has 3.5, Debian 9 too
            message=f"the python3 of {node.name} is too old (3.6 or newer is needed)",
            fix="install a newer one beside it, such as one of conda, and name it: --python /opt/conda/bin/python3",
            evidence=(login.detail,),
            do=True,
            summary="python3 is too old",
        )
    elif login.cause is Cause.NO_PYTHON:
        yield Problem(
            message=f"{node.name} has no working python3 (3.6 or newer is needed)",
            # Without Python the node's distribution is not known.
            fix="sudo apt-get install python3 || sudo dnf install python3 || sudo zypper install python3",
            evidence=(login.detail,),
            summary="no python3",
        )
    elif doubt := never_got_that_far(login, Cause.NO_PYTHON):
        yield doubt
