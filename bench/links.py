"""How soon a link that spoils jobs is a suspect of `ncheck history`, and how often a good one is.

The jobs are simulated: nothing is measured. 64 nodes with 8 links each run 300 jobs on 8 to 16 nodes. One job in
twenty fails for another reason; some of these, and some good ones, make many links count errors, and each link counts
some in a few jobs without any harm. The bad link spoils 5 % of the jobs on its node, and counts then. The bench ends
with an error where more than one history in a hundred without such a link suspects any. With --write the figures go
to docs/measured.md.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from fanout import ROOT, write

if TYPE_CHECKING:
    from ncheck.history.lemons import JobNote

MARK = ("<!-- links: written by bench/links.py --write -->", "<!-- end of links -->")
NODES, LINKS, JOBS = 64, 8, 300
SIZES = (8, 16)  # nodes of a job
# Share of jobs that fail for another reason, and in which many links count; that the bad link spoils, and counts then
OTHER, MANY, SPOILS, SEEN = 0.05, 0.01, 0.05, 0.95
HARMLESS = (0.0005, 0.002, 0.01)  # how often a good link counts in a job
USES, FIRST = 60, 3
MOST_SUSPECTED = 0.01


def jobs_of(random: Random, harmless: float, bad: tuple[str, str] | None, uses: int | None = None) -> list[JobNote]:
    """Return JOBS jobs; or as many as it takes until so many used the bad link."""
    from ncheck.history.lemons import JobNote

    made: list[JobNote] = []
    used = 0
    while used < uses if uses else len(made) < JOBS:
        nodes = tuple(f"n{number:02}" for number in random.sample(range(NODES), random.randint(*SIZES)))
        links = [(node, f"mlx5_{link}:1") for node in nodes for link in range(LINKS)]
        many = random.random() < MANY
        grown = {link: 1 for link in links if random.random() < (0.3 if many else harmless)}
        failed = random.random() < (0.5 if many else OTHER)
        if bad in links:
            used += 1
            if random.random() < SPOILS:
                failed = True
                if random.random() < SEEN:
                    grown[bad] = 50
        made.append(JobNote(failed, nodes, grown))
    return made


@dataclass(frozen=True)
class Row:
    harmless: float
    first: float
    out: float
    suspected: float


def row(harmless: float, histories: int) -> Row:
    from ncheck.history.lemons import suspects

    bad, total = ("n07", "mlx5_5:1"), NODES * LINKS
    first = out = wrong = 0
    for seed in range(histories):
        found = suspects(jobs_of(Random(f"bad {seed}"), harmless, bad, USES), total)  # noqa: S311  the same each time
        first += bad in [one.link for one in found[:FIRST]]
        out += any(one.link == bad and one.stands_out for one in found)
        wrong += any(one.stands_out for one in suspects(jobs_of(Random(f"good {seed}"), harmless, None), total))  # noqa: S311
    return Row(harmless, first / histories, out / histories, wrong / histories)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = [row(harmless, given.histories) for harmless in HARMLESS]
    columns = ("a good link counts in", f"among the first {FIRST}", "stands out", "a good one is suspected")
    lines = [f"| {' | '.join(columns)} |", f"|{'---:|' * len(columns)}"]
    lines += [f"| {one.harmless:.2%} | {one.first:.1%} | {one.out:.1%} | {one.suspected:.1%} |" for one in rows]
    kind = (
        f"{given.histories:,} histories a row with a link that spoils {SPOILS:.0%} of its jobs, after {USES} jobs that "
        f"used it, and as many of {JOBS} jobs without one; {NODES} nodes with {LINKS} links"
    )
    print(f"{kind}.\n")
    print("\n".join(lines))
    if given.write:
        section = f"## Links in jobs that fail\n\n{kind}. Simulated; see `ncheck history`.\n\n" + "\n".join(lines)
        write(section, ROOT / "docs" / "measured.md", MARK)
    if any(one.suspected > MOST_SUSPECTED for one in rows):
        sys.exit("good links are suspected too often")


if __name__ == "__main__":
    main()
