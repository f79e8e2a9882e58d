"""node[01-16] to names and back, by ClusterShell's node sets."""

from __future__ import annotations

from collections.abc import Iterable


def fold(names: Iterable[str]) -> str:
    """Return the names as one node set, in its natural order: node[01-03,07]."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet  # noqa: PLC0415  dear, and only reports need it

    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))
