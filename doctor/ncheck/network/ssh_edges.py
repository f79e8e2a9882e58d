"""Which nodes must be able to ssh to which others: the pairs that a launch uses, or all pairs in small clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


ALL_PAIRS_UP_TO = 16  # nodes: 240 logins, which the sshd of any healthy cluster can handle
RADIX = 64  # children of one daemon in Open MPI 4.1 and 5.0 (their radix routing and tree spawn)


def edges(count: int, mesh: str, origin: int | None = 0) -> dict[int, tuple[int, ...]]:
    """Map each node that runs ssh to its targets, all by their position in the node list.

    `mesh` is "none", "all" (all pairs), or "auto": all pairs with up to 16 nodes; with more, from the first node (where
    mpirun often runs) to all, and along Open MPI's tree from `origin` (see `tree`). Each node starts with its successor
    in the list, so that the logins do not reach one node all at once.
    """
    if mesh == "none":
        return {}
    if mesh == "all" or count <= ALL_PAIRS_UP_TO:
        return {node: _others(node, count) for node in range(count) if count > 1}
    found = {0: dict.fromkeys(_others(0, count))}
    for parent, child in tree(count, origin):
        found.setdefault(parent, {})[child] = None
    return {node: tuple(children) for node, children in found.items()}


def tree(count: int, origin: int | None) -> Iterator[tuple[int, int]]:
    """Yield (node, the node that it starts) of Open MPI's launch tree. mpirun runs on node `origin`.

    With None it runs on a machine that is no node: what it starts itself is then no edge between nodes. Both were seen
    with Open MPI 4.1.4 on 67 nodes.
    """
    others = [node for node in range(count) if node != origin]
    daemons = [origin, *others]
    for number, node in enumerate(others, start=1):
        parent = daemons[launcher(number)]
        if parent is not None:
            yield parent, node


def star(count: int, origin: int | None) -> Iterator[tuple[int, int]]:
    """Yield the same for a launcher that starts every node itself."""
    return ((origin, node) for node in range(count) if origin is not None and node != origin)


def launcher(daemon: int) -> int:
    """Return the daemon that starts this one in Open MPI's tree (0 is mpirun's host): 65 is started by 1, 66 by 2.

    The levels have 1, 64, 4096 ... daemons, and the daemons of a level are assigned in turn to those of the level
    above, as in the radix component of ORTE and PRRTE.
    """
    above, level = 0, 1
    for width in _widths():
        if daemon < above + width:
            parents = level
            return (daemon - above) % parents + above - parents
        above, level = above + width, width
    raise AssertionError("the levels have no end")


def _widths() -> Iterator[int]:
    width = 1
    while True:
        yield width
        width *= RADIX


def _others(node: int, count: int) -> tuple[int, ...]:
    return tuple((node + step) % count for step in range(1, count))
