"""Which other nodes each node of a large network dials, so that a fault still shows and none dials thousands.

A node dials its neighbours in the list (nodes of one rack usually stand together there) and one node of many other
racks. Who dials a node is dialled by it: each is dialled as often as it dials, and both directions of a pair are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2

ALL_UP_TO = 256  # nodes that all dial each other: 65,280 links, and 255 of one node take seconds
RACK = 16  # nodes; the real size is rarely known, and larger racks are several of these


def some_of(names: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the nodes that each of these dials: 33 of 512, 39 of 4,096.

    A block of RACK nodes counts as a rack. Every two of them try each other, if the last one is whole.
    """
    count = len(names)
    farthest = count // (2 * RACK)  # racks: half of the ring that the list makes
    far = min(farthest, max(ceil(log2(count)), ceil(farthest / RACK)))
    dialled: list[set[int]] = [set() for _ in names]
    for number in range(count):
        place, first = number % RACK, number - number % RACK
        found = {*range(min(first, count - RACK), min(first + RACK, count))} - {number}
        for turn in range(far):  # the places of a rack share all distances among them
            distance = 1 + (RACK * turn + place) * farthest // (RACK * far)
            found.add((first + RACK * distance + (place + turn) % RACK) % count)
        dialled[number] |= found
        for other in found:
            dialled[other].add(number)
    return {name: frozenset(names[other] for other in dialled[number]) for number, name in enumerate(names)}
