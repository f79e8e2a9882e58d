"""The checks of a plug-in could not be loaded

## What it finds
Distributions that register checks under the entry point `ncheck.checks` but cannot be loaded: the module is missing or
raises an exception, comes from somewhere other than the distribution (a folder of the same name shadows it), or uses a
code that is already taken. The run continues without these checks.

## Why it matters
Somebody relies on these checks. Without them a green report covers less than intended.

## What to type
`python3 -c 'import MODULE'` shows the error; repair the plug-in, or remove it: `python3 -m pip uninstall NAME`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import HERE, NodeView, Problem, Severity, node_check
from ncheck.facts.run import PlugInFacts


@node_check("NC003", Severity.ERROR, PlugInFacts, blocks_plan=True, about_ncheck=True, blames_node=False)
def plug_in_broken(node: NodeView) -> Iterator[Problem]:
    for plug_in in node[PlugInFacts].broken:
        yield Problem(f"the plug-in {plug_in.name} is broken: {plug_in.why}", plug_in.fix, where=HERE)
