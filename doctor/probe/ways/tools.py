"""Which programs that measure each node has: asked before the probe, for without them there is nothing to be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doctor.collect.tools import TOOLS
from doctor.model.facts import ToolFacts

if TYPE_CHECKING:
    from doctor.company import Company
    from doctor.model.act import Questions
    from doctor.model.facts import Tool


def ask_tools(company: Company, left: float) -> Questions:  # noqa: ARG001  every question is told how long it has
    """Ask every node."""
    return {node.name: (TOOLS,) for node in company.nodes}


def tools_of(company: Company, node: str) -> dict[str, Tool]:
    """Return a node's programs by name; none where it could not be asked."""
    facts = company.each(ToolFacts).get(node)
    return dict(facts.tools) if facts else {}
