"""Which programs that measure each node has: asked before the probe, for without them there is nothing to be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.tools import TOOLS, ToolFacts

if TYPE_CHECKING:
    from ncheck.facts.tools import Tool
    from ncheck.model.cluster import Cluster
    from ncheck.model.phase import Questions


def ask_tools(cluster: Cluster, left: float) -> Questions:  # noqa: ARG001  every question is told how long it has
    """Ask every node."""
    return {node.name: (TOOLS,) for node in cluster.nodes}


def tools_of(cluster: Cluster, node: str) -> dict[str, Tool]:
    """Return a node's programs by name; none where it could not be asked."""
    facts = cluster.connected_facts(ToolFacts).get(node)
    return dict(facts.tools) if facts else {}
