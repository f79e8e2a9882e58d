"""How many rounds of pairs it takes to find the slow nodes, by how many nodes there are; nothing is measured for real.

The cluster is the simulated one of the tests: what its pairs reach is known, with a noise of 5 %, and of 10 % for the
random clusters and those of thousands of nodes. The bench ends with an error where a slow node or pair is not found, a
healthy one is blamed, or more rounds are taken than promised. With --write the figures go to docs/measured.md, those of
thousands of nodes to docs/scale.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from random import Random
from statistics import mean

from fanout import ROOT, write

MARK = ("<!-- search: written by bench/search.py --write -->", "<!-- end of search -->")
SLOWEST, FASTEST = 0.3, 0.7  # of the usual speed
MUST_BE_FOUND = 0.6  # of the usual speed: what is faster than this may be missed under a noise of 10 %
TOLERATED = 0.001  # of the clusters, in which a slow node may stay unknown or a link be accused instead of a node
LARGE, FAULTS, LARGE_ROUNDS = 232, 5, 7
THOUSANDS, FAULTS_OF_THOUSANDS = (1024, 4096), 20
MOST_CPU = 15.0  # seconds of the head for one search


@dataclass(frozen=True)
class Tally:
    """Many clusters of one kind; `most` is the rounds of the worst of them, `limit` what is allowed."""

    nodes: str
    faults: str
    noise: float
    runs: int
    usual: float
    most: int
    limit: int
    missed: int  # slow nodes that passed, and slow pairs that were not found
    open: int  # slow nodes that were neither cleared nor blamed: the verdict is unknown
    invented: int
    links: int  # invented ones
    seconds: float  # of the head's own time for one search


def tally(  # noqa: PLR0913  the kind of cluster
    sizes: tuple[int, int], slow: tuple[int, int], runs: int, *, noise: float = 0.05, pair: bool = False, limit: int = 0
) -> Tally:
    """Search so many clusters, each with noise, slow nodes and, if wanted, a slow pair of neighbours of its own."""
    from ncheck.probe.schedule import most_rounds

    from tests.ncheck.probe.simulated import Cluster
    from tests.ncheck.probe.simulated import nodes as named

    rounds, missed, undecided, invented, false_links, begun = [], 0, 0, 0, 0, time.process_time()
    for seed in range(runs):
        random = Random(1000 * sizes[1] + seed)  # noqa: S311  the same clusters each time
        names = named(random.randint(*sizes))
        count = random.randint(slow[0], min(slow[1], (len(names) - 1) // 2))
        ill = {name: random.uniform(SLOWEST, FASTEST) for name in random.sample(names, count)}
        first = random.randrange(len(names) - 1)
        links = {(names[first], names[first + 1]): 0.5} if pair else {}
        cluster = Cluster(names, slow=ill, links=links, noise=noise, seed=seed)
        found = cluster.search()
        blamed = {suspect.node for suspect in found.slow}
        left = {suspect.node for suspect in found.unresolved}
        linked = {frozenset(link.nodes) for link in found.links}
        rounds.append(len(cluster.rounds))
        clearly = {name for name, share in ill.items() if share < MUST_BE_FOUND}
        missed += len(clearly - blamed - left)
        undecided += len(clearly & left)
        missed += len({frozenset(ends) for ends in links} - linked)
        invented += len(blamed - ill.keys())
        false_links += len(linked - {frozenset(ends) for ends in links})
    seconds = (time.process_time() - begun) / runs
    return Tally(
        _span(sizes), f"{_span(slow)} nodes" if not pair else "a pair", noise, runs, mean(rounds), max(rounds),
        limit or most_rounds(sizes[1]), missed, undecided, invented, false_links, seconds,
    )  # fmt: skip


def _span(bounds: tuple[int, int]) -> str:
    return str(bounds[0]) if bounds[0] == bounds[1] else f"{bounds[0]} to {bounds[1]}"


def judge(tallies: list[Tally]) -> None:
    """End the bench with an error where the search does not hold what is promised of it."""
    for one in tallies:
        if one.missed or one.invented or one.open + one.links > one.runs * TOLERATED:
            sys.exit(f"bench: of {one.nodes} nodes {one.missed} slow ones were missed and {one.invented} invented")
        if one.most > one.limit:
            sys.exit(f"bench: {one.most} rounds for {one.nodes} nodes")
        if one.seconds > MOST_CPU:
            sys.exit(f"bench: one search of {one.nodes} nodes costs {one.seconds:.1f} s of CPU")


def table(tallies: list[Tally]) -> list[str]:
    """Return the figures as lines of a table, in Markdown."""
    rows = [
        f"| {t.nodes} | {t.faults} | {100 * t.noise:.0f} % | {t.runs} | {t.usual:.2f} | {t.most} | {t.limit} "
        f"| {t.missed} | {t.open} | {t.invented} | {t.links} | {1000 * t.seconds:.1f} |"
        for t in tallies
    ]
    return [
        "| nodes | slow | noise | clusters | rounds | most | allowed | missed | unknown | invented | links | CPU, ms |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|", *rows,
    ]  # fmt: skip


def section(tallies: list[Tally]) -> str:
    """Return what was found, in Markdown."""
    text = (
        f"Simulated clusters with slow nodes of {SLOWEST} to {FASTEST} of the usual speed, or a slow pair of "
        f"neighbours of half of it; a node below {MUST_BE_FOUND} that passes is missed, one that is neither "
        "cleared nor blamed is unknown. In one round all pairs are measured at once. No GPU and no wire took part."
    )
    return "\n".join(["## Search for slow nodes", "", text, "", *table(tallies)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="3,4,5,8,16,33,64", help="how many nodes, comma-separated")
    parser.add_argument("--runs", type=int, default=200, help="clusters of each size")
    parser.add_argument("--random", type=int, default=10_000, help="clusters of 3 to 64 nodes with a noise of 10 %%")
    parser.add_argument("--thousands", type=int, default=20, help="clusters of 1024 and of 4096 nodes")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    sizes = [int(size) for size in asked.nodes.split(",")]
    tallies = [tally((n, n), (slow, slow), asked.runs) for n in sizes for slow in range(3) if 2 * slow < n]
    large = (LARGE, LARGE)
    tallies.append(tally(large, (FAULTS, FAULTS), asked.runs, limit=LARGE_ROUNDS))
    tallies.append(tally(large, (0, 0), asked.runs, pair=True, limit=LARGE_ROUNDS))
    if asked.random:
        tallies.append(tally((3, 64), (0, 3), asked.random, noise=0.1))
    faults = (FAULTS_OF_THOUSANDS, FAULTS_OF_THOUSANDS)
    thousands = [tally((n, n), faults, asked.thousands, noise=0.1) for n in THOUSANDS if asked.thousands]
    text, more = section(tallies), "\n".join(table(thousands))
    print(text, more, sep="\n\n")
    judge([*tallies, *thousands])
    if asked.write:
        write(text, ROOT / "docs" / "measured.md", MARK)
        write(more, ROOT / "docs" / "scale.md", MARK)


if __name__ == "__main__":
    main()
