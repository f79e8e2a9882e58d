"""The job's Python is not the same on every node

## What it finds
Nodes whose job interpreter lies at another path, or is another release of Python (the first two numbers), than the
rest. It is the one that `--python` names, or the active venv's or conda's, or the first python3 on PATH.

## Why it matters
Launchers run the same command line on every node, and Horovod the very path of the first one: where it leads to
another Python, other packages are loaded there, or none. Pickled code does not cross releases of Python.

## What to type
`which -a python3` on the named nodes; then name one for all: `ncheck --python /opt/conda/bin/python nodes.txt`, and
start the job with that same path.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.interpreter import InterpreterFacts


@parity_check(
    "NC207", Severity.WARNING, InterpreterFacts, everywhere=True, what="the job's Python differs",
    fix="which -a python3",
    shown=lambda python: f"{python.path} {python.version} ({python.how})",
)  # fmt: skip
def interpreter_differs(python: InterpreterFacts) -> str:
    return f"{python.path} {'.'.join(python.version.split('.')[:2])}"
