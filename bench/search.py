"""How many rounds of pairs it takes to find the slow nodes, by how many nodes there are; nothing is measured for real.

The cluster is the simulated one of the tests: what its pairs reach is known, with a noise of 5 %. The bench ends with
an error where a slow node is not found, a healthy one is blamed, or more rounds are taken than promised. With --write
the figures go to docs/measured.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from math import log2
from random import Random
from statistics import mean

from fanout import ROOT, write

MARK = ("<!-- search: written by bench/search.py --write -->", "<!-- end of search -->")
SLOWEST, FASTEST = 0.3, 0.7  # of the usual speed


@dataclass(frozen=True)
class Tally:
    """Many clusters of one size, each with so many slow nodes; `most` is the rounds of the worst of them."""

    nodes: int
    slow: int
    runs: int
    usual: float
    most: int
    missed: int
    invented: int
    seconds: float  # of the head's own time for one search

    @property
    def limit(self) -> float:
        return 2 * log2(self.nodes) + 2


def tally(nodes: int, slow: int, runs: int) -> Tally:
    """Search so many clusters, each with noise and slow nodes of its own."""
    from tests.ncheck.probe.simulated import Cluster
    from tests.ncheck.probe.simulated import nodes as named

    rounds, missed, invented, begun = [], 0, 0, time.process_time()
    for seed in range(runs):
        random = Random(1000 * nodes + seed)  # noqa: S311  the same clusters each time
        ill = {name: random.uniform(SLOWEST, FASTEST) for name in random.sample(named(nodes), slow)}
        cluster = Cluster(named(nodes), slow=ill, seed=seed)
        found = cluster.search()
        blamed = {suspect.node for suspect in found.slow}
        rounds.append(len(cluster.rounds))
        missed += len(ill.keys() - blamed)
        invented += len(blamed - ill.keys()) + len(found.links)
    seconds = (time.process_time() - begun) / runs
    return Tally(nodes, slow, runs, mean(rounds), max(rounds), missed, invented, seconds)


def judge(tallies: list[Tally]) -> None:
    """End the bench with an error where the search does not hold what is promised of it."""
    for one in tallies:
        if one.missed or one.invented:
            sys.exit(f"bench: of {one.nodes} nodes {one.missed} slow ones were missed and {one.invented} invented")
        if one.most >= one.limit:
            sys.exit(f"bench: {one.most} rounds for {one.nodes} nodes")


def section(tallies: list[Tally]) -> str:
    """Return the figures, in Markdown."""
    rows = [
        f"| {t.nodes} | {t.slow} | {t.usual:.2f} | {t.most} | {t.limit:.1f} | {t.missed} | {t.invented} "
        f"| {1000 * t.seconds:.1f} |"
        for t in tallies
    ]
    told = (
        f"Simulated clusters, {tallies[0].runs} of each size, with a noise of 5 % and slow nodes of {SLOWEST} to "
        f"{FASTEST} of the usual speed; in one round all pairs meet at once. No GPU and no wire took part."
    )
    return "\n".join([
        "## Search for slow nodes", "", told, "",
        "| nodes | slow | rounds, mean | rounds, most | 2 log2(N) + 2 | missed | invented | CPU of a search, ms |",
        "|---|---|---|---|---|---|---|---|", *rows,
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="3,4,5,8,16,33,64", help="how many nodes, comma-separated")
    parser.add_argument("--runs", type=int, default=200, help="clusters of each size")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/measured.md")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    tallies = [tally(nodes, slow, asked.runs) for nodes in map(int, asked.nodes.split(",")) for slow in range(3)
               if 2 * slow < nodes]  # fmt: skip
    told = section(tallies)
    print(told)
    judge(tallies)
    if asked.write:
        write(told, ROOT / "docs" / "measured.md", MARK)


if __name__ == "__main__":
    main()
