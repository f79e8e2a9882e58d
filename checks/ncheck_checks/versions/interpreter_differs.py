"""The job's Python differs between nodes

## What it finds
Nodes whose job interpreter has another path, or another Python release (the first two numbers), than on the other
nodes. The job interpreter is the one given with `--python`; else the one that `ncheck launch` or `ncheck plan` gets in
the job's command; else the first of these that the node has and that has a framework there: the active venv or conda
environment of the shell that runs ncheck, the python on its PATH, the python3 on the PATH of the login. An environment
that no node has is no finding.

## Why it matters
Launchers run the same command line on every node, and Horovod uses the exact path of the first node. Where that path
leads to another Python, other packages are loaded, or none. Pickled code does not work across Python releases.

## What to type
`which -a python3` on the named nodes; then select one for all, `ncheck --python /opt/conda/bin/python nodes.txt`, and
start the job with the same path.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.interpreter import InterpreterFacts


@parity_check(
    "NC207", Severity.WARNING, InterpreterFacts, everywhere=True, what="the job's Python differs",
    fix="which -a python3", look=True,
    shown=lambda python: f"{python.path} {python.version} ({python.how})",
)  # fmt: skip
def interpreter_differs(python: InterpreterFacts) -> str:
    return f"{python.path} {'.'.join(python.version.split('.')[:2])}"
