"""Whether the search between groups of nodes finds what is slow and never names what is not; nothing runs for real.

The clusters are the simulated ones of the tests: leaves of nodes whose uplinks, or nodes, have 0.3 to 0.6 of the usual
speed, with a noise of 10 %. The bench ends with an error where something healthy is named, something slow is not found
although the groups are known, or more tests are taken than promised.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from random import Random
from statistics import mean
from typing import TYPE_CHECKING

from fanout import ROOT

if TYPE_CHECKING:
    from ncheck.probe.boundary import Found
    from ncheck.probe.facts import Groups

SLOWEST, FASTEST = 0.3, 0.6  # of the usual speed
MOST_TESTS = {256: 60}
KNOWN, NEIGHBOURS, SHIFTED, SHUFFLED = "known", "guessed", "guessed, shifted", "guessed, shuffled"
FOUND = 0.99  # of what is slow, where the groups are known
TUNED, HELD = 0, 10**6  # the first seed of those by which the limits of the search were chosen, and of all others


@dataclass(frozen=True)
class Tally:
    """Many clusters of one kind. `open`: it was said that something is slow, and not what."""

    nodes: str
    groups: str
    slow: str
    runs: int
    found: int
    open: int
    invented: int
    tests: list[int]
    rounds: list[int]
    seconds: float  # of the head's own time for one search


def tally(leaves: tuple[int, int], slow: int, uplinks: int, seeds: range, groups: str = KNOWN) -> Tally:
    """Search a cluster for each seed, with noise and faults of its own."""
    from ncheck.probe.boundary import blocks

    from tests.ncheck.probe.leaves import Leaves, nodes

    found, invented, tests, rounds, begun = 0, 0, [], [], time.process_time()
    count, size = leaves
    names = nodes(count * size)
    for seed in seeds:
        random = Random(1000 * count + seed)  # noqa: S311  the same clusters each time
        shift = random.randrange(1, size) if groups == SHIFTED else 0
        listed = [*names[shift:], *names[:shift]]
        if groups == SHUFFLED:
            random.shuffle(listed)
        cluster = Leaves(
            count, size, seed=seed, listed=listed,
            slow={name: random.uniform(SLOWEST, FASTEST) for name in random.sample(names, slow)},
            uplinks={leaf: random.uniform(SLOWEST, FASTEST) for leaf in random.sample(range(count), uplinks)},
        )  # fmt: skip
        answer = cluster.search(guessed=groups != KNOWN)
        named = named_by(answer, cluster.groups if groups == KNOWN else blocks(listed), cluster.leaf)
        true = {*cluster.slow, *cluster.uplinks}
        invented += bool(named - true)
        found += named == true
        tests.append(cluster.tests)
        rounds.append(cluster.rounds)
    runs = len(seeds)
    seconds = (time.process_time() - begun) / runs
    faults = [f"{slow} node"] * bool(slow) + [f"{uplinks} uplink"] * bool(uplinks)
    return Tally(
        str(len(names)), groups, " and ".join(faults) or "none", runs, found, runs - found - invented, invented, tests,
        rounds, seconds,
    )  # fmt: skip


def named_by(answer: Found, groups: Groups, leaf: dict[str, int]) -> set[object]:
    """Return what an answer names: a node, the leaf whose uplink it means, or the boundary itself where it has none."""
    named: set[object] = {one.node for one in answer.nodes}
    for boundary in answer.boundaries:
        sides = [{leaf[name] for group in side for name in groups[group]} for side in (boundary.one, boundary.other)]
        alone = [side for side in sides if len(side) == 1 and sides[0].isdisjoint(sides[1])]
        named.add(next(iter(alone[0])) if alone else boundary)
    return named


def judge(tallies: list[Tally]) -> None:
    """End the bench with an error where the search does not hold what is promised of it."""
    for one in tallies:
        if one.invented:
            sys.exit(f"bench: of {one.nodes} nodes with {one.slow} slow, {one.invented} were named that are not")
        if one.groups == KNOWN and one.found < FOUND * one.runs:
            sys.exit(f"bench: of {one.nodes} nodes with {one.slow} slow, {one.found} of {one.runs} were found")
        if max(one.tests) > MOST_TESTS.get(int(one.nodes), max(one.tests)):
            sys.exit(f"bench: {max(one.tests)} tests for {one.nodes} nodes")


def table(tallies: list[Tally]) -> str:
    """Return the figures in Markdown."""
    rows = [
        f"| {t.nodes} | {t.groups} | {t.slow} | {t.runs} | {t.found} | {t.open} | {t.invented} | {mean(t.tests):.1f} "
        f"| {max(t.tests)} | {mean(t.rounds):.1f} | {max(t.rounds)} | {1000 * t.seconds:.0f} |"
        for t in tallies
    ]
    head = "| nodes | groups | slow | clusters | found | open | invented | tests | most | rounds | most | CPU, ms |"
    return "\n".join([head, "|---" * 12 + "|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, help="clusters of 256 nodes, of each kind")
    parser.add_argument("--thousands", type=int, default=200, help="clusters of 4096 nodes, of each kind")
    parser.add_argument("--first-seed", type=int, default=HELD, help=f"{TUNED} has the clusters it was tuned by")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    some, many = (range(asked.first_seed, asked.first_seed + runs) for runs in (asked.runs, asked.thousands))
    faults = [(0, 0), (1, 0), (0, 1), (1, 1)]
    tallies = [tally((16, 16), *slow, some) for slow in faults]
    tallies += [tally((64, 64), *slow, many) for slow in faults if asked.thousands]
    tallies += [tally((16, 16), *slow, some, how) for how in (NEIGHBOURS, SHIFTED, SHUFFLED) for slow in faults]
    print(table(tallies))
    judge(tallies)


if __name__ == "__main__":
    main()
