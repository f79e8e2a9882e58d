"""Which node must be able to ssh to which: the edges that a launch uses, and all pairs where that is cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


ALL_PAIRS_UP_TO = 16  # nodes: 240 logins, which every sshd of a healthy cluster bears


RADIX = 64  # children of one daemon in Open MPI 4.1 and 5.0 (their radix routing and tree spawn)


def edges(count: int, mesh: str) -> dict[int, tuple[int, ...]]:
    """Map each node that opens ssh to the nodes that it opens it to, by their place in the listing.

    `mesh` is "none", "all" (all pairs), or "auto": all pairs up to 16 nodes; beyond, the first node (where mpirun is
    usually started) to all, and Open MPI's tree. Each starts with the node after itself, so that no node is asked by
    all others at the same moment.
    """
    if mesh == "none":
        return {}
    if mesh == "all" or count <= ALL_PAIRS_UP_TO:
        return {one: _others(one, count) for one in range(count) if count > 1}
    found: dict[int, list[int]] = {0: list(_others(0, count))}
    for child in range(1, count):
        if (parent := launcher(child)) != 0:
            found.setdefault(parent, []).append(child)
    return {one: tuple(children) for one, children in found.items()}


def launcher(daemon: int) -> int:
    """Return which daemon starts this one in Open MPI's tree (0 is mpirun's host): of 65, it is 1; of 66, it is 2.

    As the radix component of ORTE and PRRTE counts: the levels hold 1, 64, 4096 ... daemons, and a level's daemons are
    dealt out in turn to those of the level above.
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


def _others(one: int, count: int) -> tuple[int, ...]:
    return tuple((one + step) % count for step in range(1, count))
