"""The program of the job is missing on a node

## What it finds
Nodes that lack the program of `ncheck plan ... -- PROGRAM` or `ncheck launch ... -- PROGRAM`, or may not run it, and
those that lack the script of `python SCRIPT`, where full paths are known: written so, or by `--workdir DIR`. A program
without a slash is not looked for: which PATH leads to it depends on the launcher.

## Why it matters
The launcher stops: "mpirun was unable to find the specified executable file", "can't open file 'train.py': No such file
or directory"; torchrun's ranks on the other nodes wait for the rendezvous to time out.

## What to type
`ls -l PROGRAM` on the named nodes and on a healthy one, and `findmnt -T PROGRAM` on that one: if it lies on a shared
file system there, the others lack that mount. Otherwise copy it: `rsync -a PROGRAM NODE:PROGRAM`.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import Inconclusive, NodeView, Problem, Severity, Unread, node_check
from ncheck.facts.programs import ProgramFacts


@node_check("NC227", Severity.ERROR, ProgramFacts, blocks_plan=True)
def program_missing(node: NodeView) -> Iterator[Problem | Inconclusive]:
    for path, trouble in node[ProgramFacts].paths.items():
        if isinstance(trouble, Unread):
            yield Inconclusive(trouble.reason)
        elif trouble:
            message = f"{path} of the job's command {trouble}"
            yield Problem(message, f"ls -ld {quote(path)}", look=True, summary="the job's program is missing")
