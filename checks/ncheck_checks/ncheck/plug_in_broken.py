"""A plug-in's checks could not be loaded

## What it finds
Distributions that register checks of their own under the entry point `ncheck.checks` and cannot be loaded: their module
raises, is not there, comes from somewhere else than the distribution (a folder of that name shadows it), or uses a code
that is taken. The run goes on without those checks, on no node.

## Why it matters
Somebody relies on these checks. Without them the report is green for less than it was meant to be.

## What to type
`python3 -c 'import MODULE'` shows the error; mend the plug-in, or leave it out: `python3 -m pip uninstall NAME`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.run import PlugInFacts


@node_check("NC003", Severity.ERROR, PlugInFacts, blocks_plan=True)
def plug_in_broken(node: NodeView) -> Iterator[Problem]:
    for plug_in in node[PlugInFacts].broken:
        yield Problem(f"the plug-in {plug_in.name} is broken: {plug_in.why}", plug_in.fix)
