"""Which nodes fail more often than the fleet: an exact binomial test for each node, corrected for how many there are.

If all nodes were alike, each of the fleet's failures would fall on a node with the probability of its share of the
examinations. A node stands out if so many failures as it has, or more, would fall on it by chance less often than
RISK divided by the number of nodes. bench/lemons.py counts how often that accuses a node of a fleet that is alike, and
how soon it finds one that is not: see docs/measured.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

RISK = 0.003  # of accusing any node at one look: a fleet that is looked at after every run stays below one in twenty
FEWEST = 3  # failures: two may be one fault that was mended once too early


def lemons(counts: Mapping[str, tuple[int, int]]) -> tuple[str, ...]:
    """Return the nodes that stand out, the worst first. `counts`: how often a node was examined, and failed."""
    examinations = sum(examined for examined, _ in counts.values())
    failures = sum(failed for _, failed in counts.values())
    many = {node: count for node, count in counts.items() if count[1] >= FEWEST}
    chances = {
        (examined, failed): chance_of(failed, failures, examined / examinations)
        for examined, failed in set(many.values())
    }
    found = [node for node, count in many.items() if chances[count] * len(counts) < RISK]
    return tuple(sorted(found, key=lambda node: chances[many[node]]))


def chance_of(at_least: int, trials: int, share: float) -> float:
    """Return the probability of that many successes or more, by the binomial distribution."""
    if at_least <= 0 or share >= 1:
        return 1.0
    ways = math.lgamma(trials + 1) - math.lgamma(at_least + 1) - math.lgamma(trials - at_least + 1)
    term = math.exp(ways + at_least * math.log(share) + (trials - at_least) * math.log1p(-share))
    total = 0.0
    for number in range(at_least, trials + 1):
        total += term
        term *= (trials - number) / (number + 1) * share / (1 - share)
        if term < total * 1e-12:
            break
    return min(total, 1.0)
