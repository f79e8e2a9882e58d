"""PYTHONPATH or PYTHONHOME breaks the job's Python

## What it finds
Nodes on which PYTHONHOME or PYTHONPATH, as a login of a launcher or `--setup` sets it, keeps the job's interpreter from
starting or from importing its own standard library, and on which the same interpreter works without the variable. The
rest of the report is about the interpreter without it. A PYTHONPATH that leads to more packages is no finding.

## Why it matters
Every rank on the node dies when Python starts ("No module named 'encodings'"), or in an import of the standard library
that finds another file of that name, such as an old socket.py. The other ranks wait for it.

## What to type
`grep -sn PYTHONPATH ~/.bashrc ~/.bash_profile ~/.profile /etc/environment /etc/profile.d/*` on the named nodes shows
where it is set; remove the line or the folder in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.interpreter import InterpreterFacts
from ncheck.login_variables import where_set


@node_check("NC224", Severity.ERROR, InterpreterFacts, blocks_plan=True)
def python_broken_by_variable(node: NodeView) -> Iterator[Problem]:
    python = node[InterpreterFacts]
    if python.broken and (names := list(python.broken.variables)):
        set_to = " and ".join(f"{name}={quote(value)}" for name, value in python.broken.variables.items())
        message = f"{python.path} does not work with {set_to}: {python.broken.error}"
        look, summary = where_set(*names), f"{' and '.join(names)} breaks Python"
        yield Problem(message, look.line, look=True, summary=summary)
