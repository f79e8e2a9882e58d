"""Which programs that measure each node has: asked before the probe, for without them there is nothing to be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncheck.facts.tools import ToolFacts

if TYPE_CHECKING:
    from ncheck.facts.tools import Tool
    from ncheck.model.cluster import Cluster


def tools_of(cluster: Cluster, node: str) -> dict[str, Tool]:
    """Return a node's programs by name; none where it could not be asked."""
    facts = cluster.connected_facts(ToolFacts).get(node)
    return dict(facts.tools) if facts else {}
