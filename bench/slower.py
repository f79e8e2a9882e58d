"""How soon `ncheck history` sees that a bandwidth fell, and how often it sees a fall that is none.

The histories are simulated: nothing is measured. A figure differs from run to run by a normal distribution, and in one
kind of history one run in ten is 5 to 30 % lower. The bench ends with an error where runs in which nothing fell are
accused more often than once in a thousand, or a step of 10 % after 20 runs is found less often than in 95 %: by the
first run after it with 1 % of noise, by the fifth with 2 %, by the tenth with 3 %.
With --write the figures go to docs/measured.md.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from random import Random

from fanout import ROOT, write

MARK = ("<!-- slower: written by bench/slower.py --write -->", "<!-- end of slower -->")
STEP, AFTER = 0.1, (1, 2, 3, 5, 10)
# Noise, runs before, figures of a run, share of runs that are far off
KINDS = (
    (0.01, 9, 1, 0.0), (0.01, 20, 1, 0.0), (0.02, 9, 1, 0.0), (0.02, 20, 1, 0.0), (0.03, 9, 1, 0.0), (0.03, 20, 1, 0.0),
    (0.01, 20, 6, 0.0), (0.02, 20, 6, 0.0), (0.01, 20, 300, 0.0), (0.01, 20, 1, 0.1), (0.02, 20, 1, 0.1),
)  # fmt: skip
MOST_ACCUSED, LEAST_FOUND = 0.001, 0.95
LONG = 20  # runs before
SOON = {0.01: 1, 0.02: 5, 0.03: 10}  # runs after the step, by which it must be found where LONG runs are before


@dataclass(frozen=True)
class Row:
    """Histories of one kind: the share of runs that are accused, and of steps that were found by so many runs after."""

    noise: float
    before: int
    figures: int
    off: float
    accused: float
    found: tuple[float, ...]


def series(random: Random, count: int, level: float, noise: float, off: float) -> list[float]:
    return [
        100 * level * (1 + random.gauss(0, noise)) * (1 - random.uniform(0.05, 0.3) if random.random() < off else 1)
        for _ in range(count)
    ]


def row(noise: float, before: int, figures: int, off: float, trials: int) -> Row:
    from ncheck.history.slower import fall_of

    accused, found = 0, dict.fromkeys(AFTER, 0)
    for seed in range(max(trials // figures, 20)):
        random = Random(f"quiet {seed}")  # noqa: S311  the same histories each time
        histories = [[*series(random, before, 1, noise, off), *series(random, 1, 1, noise, 0)] for _ in range(figures)]
        accused += any(fall_of(one, figures) for one in histories)
    steps = max(trials // 20, 20)
    for seed in range(steps):
        random = Random(f"step {seed}")  # noqa: S311
        values = series(random, before, 1, noise, off) + series(random, max(AFTER), 1 - STEP, noise, 0)
        seen = [bool(fall_of(values[: before + run], figures)) for run in range(1, max(AFTER) + 1)]
        for after in AFTER:
            found[after] += any(seen[:after])
    runs = max(trials // figures, 20)
    return Row(noise, before, figures, off, accused / runs, tuple(found[after] / steps for after in AFTER))


def table(rows: list[Row]) -> str:
    columns = ("noise", "runs before", "figures of a run", "runs far off", "accused", *(f"{n} after" for n in AFTER))
    lines = [f"| {' | '.join(columns)} |", f"|{'---:|' * len(columns)}"]
    for one in rows:
        kind = f"{one.noise:.0%} | {one.before} | {one.figures} | {one.off:.0%} | {one.accused:.3%}"
        lines.append(f"| {kind} | {' | '.join(f'{share:.1%}' for share in one.found)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = [row(*kind, given.trials) for kind in KINDS]
    kind = (
        f"{given.trials:,} figures of runs a row in which nothing fell (accused: the share of runs), and a twentieth "
        f"as many in which it fell by {STEP:.0%} (the others: the share that was seen by so many runs after)"
    )
    print(f"{kind}.\n\n{table(rows)}")
    if given.write:
        section = f"## Slower than before\n\n{kind}. Simulated; see `ncheck history`.\n\n{table(rows)}"
        write(section, ROOT / "docs" / "measured.md", MARK)
    for one in rows:
        if one.accused > MOST_ACCUSED:
            sys.exit(f"{one} is accused too often")
        plain = (one.before, one.figures, one.off) == (LONG, 1, 0)
        if plain and one.found[AFTER.index(SOON[one.noise])] < LEAST_FOUND:
            sys.exit(f"{one} is found too late")


if __name__ == "__main__":
    main()
