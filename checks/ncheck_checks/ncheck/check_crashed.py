"""A check crashed

## What it finds
Checks that raised instead of judging. Their verdict is `crashed` on the nodes that they were shown; all others ran.

## Why it matters
It is a fault of the check (ours, or a plug-in's), not of the node; but what it looks for was not looked for.

## What to type
`ncheck --record DIR nodes.txt` saves what the nodes answered (secrets redacted): attach it to a bug report. Until it is
mended, `ncheck --ignore NAME nodes.txt` keeps it from deciding the exit code.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.run import CrashFacts


@node_check("NC004", Severity.ERROR, CrashFacts, blocks_plan=True)
def check_crashed(node: NodeView) -> Iterator[Problem]:
    for crash in node[CrashFacts].crashes:
        message = f"the check {crash.check} ({crash.code}) crashed: {crash.why}"
        yield Problem(message, f"ncheck --ignore {crash.check} nodes.txt", (f"it lives in {crash.module}",))
