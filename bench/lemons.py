"""How often `ncheck history` accuses a node of a fleet that is alike, and how soon it finds one that is not.

The fleets are simulated: nothing is measured. 1,000 nodes are examined 1,000 times; in each run a node fails with the
usual rate, a lemon with so many times that rate. The history is looked at after every tenth run, as a user would. The
bench ends with an error where more than one fleet in twenty without lemons is ever accused. With --write the figures
go to docs/measured.md.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from random import Random

from fanout import ROOT, write

MARK = ("<!-- lemons: written by bench/lemons.py --write -->", "<!-- end of lemons -->")
NODES, RUNS, LOOKS = 1000, 1000, range(10, 1001, 10)
RATES = (0.001, 0.005, 0.02, 0.05)
KINDS = ((1, 2), (1, 5), (1, 10), (1, 20), (20, 2), (20, 5), (20, 10), (20, 20))  # lemons, times the usual rate
SOON, MOST_ACCUSED, OF_EQUALS = 50, 0.05, 5


@dataclass(frozen=True)
class Row:
    """Many fleets of one kind: the share of lemons that were found, and of fleets in which a good node was accused."""

    rate: float
    lemons: int
    times: int
    soon: float  # by the 50th run
    ever: float
    accused: float


def failures(random: Random, rates: list[float]) -> list[tuple[int, int]]:
    """Return who fails in which run, in the order of the runs."""
    found = []
    for node, rate in enumerate(rates):
        run, step = 0, math.log1p(-min(rate, 0.99))
        while (run := run + 1 + int(math.log(1 - random.random()) / step)) <= RUNS:
            found.append((run, node))
    return sorted(found)


def simulated(rate: float, count: int, times: int, fleets: int) -> Row:
    from ncheck.history.lemons import lemons

    soon = ever = accused = 0
    for seed in range(fleets):
        random = Random(seed)  # noqa: S311  the same fleets each time
        events = iter(failures(random, [rate * (times if node < count else 1) for node in range(NODES)]))
        failed, found, event = [0] * NODES, {}, next(events, None)
        for look in LOOKS:
            while event and event[0] <= look:
                failed[event[1]] += 1
                event = next(events, None)
            for name in lemons({str(node): (look, number) for node, number in enumerate(failed)}):
                found.setdefault(int(name), look)
        soon += sum(node < count and look <= SOON for node, look in found.items())
        ever += sum(node < count for node in found)
        accused += any(node >= count for node in found)
    return Row(rate, count, times, soon / fleets / max(count, 1), ever / fleets / max(count, 1), accused / fleets)


def table(rows: list[Row]) -> str:
    columns = ("usual rate", "lemons", "times that", "found by run 50", "by run 1,000", "fleets with a false one")
    lines = [f"| {' | '.join(columns)} |", f"|{'---:|' * len(columns)}"]
    for one in rows:
        shares = (f"{one.soon:.0%}", f"{one.ever:.0%}") if one.lemons else ("", "")
        times = str(one.times) if one.lemons else ""
        lines.append(f"| {one.rate:.1%} | {one.lemons} | {times} | {' | '.join(shares)} | {one.accused:.0%} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleets", type=int, default=40)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = [
        simulated(rate, count, times, given.fleets if count else OF_EQUALS * given.fleets)
        for rate in RATES
        for count, times in ((0, 1), *KINDS)
    ]
    fleets = f"{given.fleets} fleets of {NODES:,} nodes a row, {OF_EQUALS} times as many without lemons"
    kind = f"{fleets}, looked at after every tenth of {RUNS:,} runs"
    print(f"{kind}.\n\n{table(rows)}")
    if given.write:
        section = f"## Nodes that stand out\n\n{kind}. Simulated; see `ncheck history`.\n\n{table(rows)}"
        write(section, ROOT / "docs" / "measured.md", MARK)
    accused = max(one.accused for one in rows if not one.lemons)
    if accused > MOST_ACCUSED:
        sys.exit(f"{accused:.0%} of the fleets without lemons were accused; at most {MOST_ACCUSED:.0%} are allowed")


if __name__ == "__main__":
    main()
