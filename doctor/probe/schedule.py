"""Who meets whom next, and which nodes are measured together."""

from __future__ import annotations

from collections.abc import Sequence

from doctor.probe.collectives import Collective
from doctor.probe.search import Expect, nobody_knows

Pairs = tuple[tuple[str, str], ...]


def pair_rounds(names: Sequence[str], done: Sequence[Collective], expect: Expect = nobody_knows) -> Pairs:
    """Return the disjoint pairs of the next round; () when there is nothing more to find.

    `done` is all that was measured so far (of it the pairs count). In the first rounds every node meets two others,
    then only suspects and doubtful links meet again: fewer rounds than 2 log2(N) + 2.
    """
    raise NotImplementedError


def scaling_groups(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the first 2, 4, 8 ... of the nodes, fewer than all, each group within the next."""
    sizes = (2**power for power in range(1, len(names).bit_length()))
    return tuple(tuple(names[:size]) for size in sizes if size < len(names))
