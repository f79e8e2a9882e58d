"""A check crashed

## What it finds
Checks that raised an exception instead of judging. Their verdict on the nodes concerned is `crashed`; all other checks
ran.

## Why it matters
The fault is in the check (ncheck's or a plug-in's), not in the node, but the node was not examined for what the check
looks for.

## What to type
`ncheck --record DIR nodes.txt` saves the answers of the nodes with secrets redacted: attach them to a bug report. Until
the check is fixed, `ncheck --ignore NAME nodes.txt` excludes it from the exit code.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, NodeView, Problem, Severity, node_check
from ncheck.facts.run import CrashFacts


@node_check("NC004", Severity.ERROR, CrashFacts, blocks_plan=True, about_ncheck=True)
def check_crashed(node: NodeView) -> Iterator[Problem]:
    for crash in node[CrashFacts].crashes:
        message = f"the check {crash.check} ({crash.code}) crashed: {crash.why}"
        yield Problem(message, f"ncheck --ignore {crash.check} nodes.txt", (f"module: {crash.module}",), where=HERE)
