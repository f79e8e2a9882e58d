"""Which nodes fail more often than the fleet, and which links count errors in jobs that fail: an exact binomial test
for each, corrected for how many there are.

If all nodes were alike, each of the fleet's failures would fall on a node with the probability of its share of the
examinations. A node stands out if so many failures as it has, or more, would fall on it by chance less often than
RISK divided by the number of nodes. bench/lemons.py counts how often that accuses a node of a fleet that is alike, and
how soon it finds one that is not: see docs/measured.md.

Of a link, the trials are the jobs in which it counted errors, and the failures those of them that failed. If its
errors had nothing to do with it, they would fail as often as all jobs do. A job in which many links counted says
nothing of one of them: a node that dies, or a switch, makes all of them count. bench/links.py counts how often that is
wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from ncheck.lazy_dataclass import dataclass

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


Link = tuple[str, str]  # a node, and what counts there: "mlx5_5:1"
FEW_LINKS = 3  # that may count in one job, if they are to blame
_RISK_OF_LINKS = 0.002  # of suspecting any link at one look


@dataclass(frozen=True)
class JobNote:
    """One job: whether it failed, its nodes, and the links that counted errors while it ran, with how many."""

    failed: bool
    nodes: tuple[str, ...]
    grown: Mapping[Link, int]


@dataclass(frozen=True)
class Suspect:
    """A link. `counted`: jobs in which it counted errors and few others did; `failed`: those of them that failed;
    `jobs`: all jobs on its node; `of_all`: as what part all jobs failed; `chance` to see that many by chance.
    `stands_out`: it is below the risk, corrected for the number of links.
    """

    link: Link
    counted: int
    failed: int
    jobs: int
    of_all: float
    chance: float
    stands_out: bool


def suspects(jobs: Sequence[JobNote], links: int) -> tuple[Suspect, ...]:
    """Return the links that counted errors in a job that failed, the worst first. `links`: how many there are.

    It is where to look, and no proof: nothing is taken away for it.
    """
    if not jobs:
        return ()
    used = Counter(node for job in jobs for node in job.nodes)
    few = [job for job in jobs if len(job.grown) <= FEW_LINKS]
    counted = Counter(link for job in few for link in job.grown)
    failed = Counter(link for job in few if job.failed for link in job.grown)
    share = (sum(job.failed for job in jobs) + 1) / (len(jobs) + 2)
    tested = max(links, len(counted))
    found = []
    for link, number in failed.items():
        chance = chance_of(number, counted[link], share)
        out = number >= FEWEST and chance * tested < _RISK_OF_LINKS
        found.append(Suspect(link, counted[link], number, used[link[0]], share, chance, stands_out=out))
    return tuple(sorted(found, key=lambda one: (one.chance, -one.failed, one.link)))
