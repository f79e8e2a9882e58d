"""Which programs that measure each node has: asked before the probe, for without them there is nothing to be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.tools import TOOLS, ToolFacts

if TYPE_CHECKING:
    from ncheck.facts.tools import Tool
    from ncheck.model.cluster import Company
    from ncheck.model.phase import Questions


def ask_tools(company: Company, left: float) -> Questions:  # noqa: ARG001  every question is told how long it has
    """Ask every node."""
    return {node.name: (TOOLS,) for node in company.nodes}


def tools_of(company: Company, node: str) -> dict[str, Tool]:
    """Return a node's programs by name; none where it could not be asked."""
    facts = company.each(ToolFacts).get(node)
    return dict(facts.tools) if facts else {}
