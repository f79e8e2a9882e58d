"""Which nodes were left out, and why, in one line."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.report import text as words
from doctor.report.folding import grouped

_LONGEST = 300  # characters of one reason: a node's own words may be in it


def left_out(bad: Mapping[str, str], total: int) -> str:
    """Say what is left of all: "15 of 16, without node07: NC402 ...". What is bad for one reason is named together."""
    reasons = "; ".join(f"{words.node_set(nodes)}: {words.line(why)[:_LONGEST]}" for why, nodes in grouped(dict(bad)))
    return f"{total - len(bad)} of {total}, without {reasons}"
