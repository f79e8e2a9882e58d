"""How often triage names a rank that keeps the others waiting, from NCCL Inspector's times: rightly, and wrongly.

The jobs are simulated: nothing is measured. A step computes 100 ms and transfers 20 ms, and each rank computes for a
little longer or less. The bench ends with an error where one of 1,000 jobs without a slow rank names one, and where a
rank that is slow by 10 %, under a jitter of 2 %, is found in fewer than 95 of 100. With --write the figures go to
docs/measured.md.
"""

from __future__ import annotations

import argparse
import sys

from fanout import ROOT, write

MARK = ("<!-- last comers: written by bench/last_comers.py --write -->", "<!-- end of last comers -->")
SEEDS, JOBS, ENOUGH = 1000, 200, 0.95
RANKS, STEPS = (2, 8, 16, 64), (128, 192, 256)


def named(seed: int, ranks: int, steps: int, jitter: str, **more: object) -> set[str]:
    """Return who is named in one job: a rank, and the first or second eight of 16 or more as a node."""
    from ncheck.triage.last_comers import last_comer

    from tests.ncheck.triage.arrivals import calls

    found = calls(seed, ranks, steps, jitter, **more)  # type: ignore[arg-type]
    by_node = last_comer(found, lambda rank: f"node{rank // 8}") if ranks > 8 else None  # noqa: PLR2004  of one node
    return {one.name for one in (last_comer(found, str), by_node) if one}


def main() -> int:
    """Print both tables, write them if wanted, and return 0 if all limits are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    wanted = parser.parse_args().write
    sys.path.insert(0, str(ROOT))
    from tests.ncheck.triage.arrivals import JITTERS

    wrong = {
        (ranks, jitter): sum(bool(named(seed, ranks, steps, jitter)) for steps in (128, 256) for seed in range(SEEDS))
        for ranks in RANKS[:3] for jitter in JITTERS
    }  # fmt: skip
    lines = [f"Jobs without a slow rank, of {2 * SEEDS} (128 and 256 steps): a rank or node is named in"]
    lines += ["", f"| ranks | {' | '.join(JITTERS)} |", f"|---|{'---|' * len(JITTERS)}"]
    lines += [f"| {ranks} | {' | '.join(str(wrong[ranks, jitter]) for jitter in JITTERS)} |" for ranks in RANKS[:3]]
    lines += ["", "One rank is slower: it is named in this share of jobs, after so many steps", ""]
    lines += [f"| slower by | jitter | ranks | {' | '.join(map(str, STEPS))} |", f"|---|---|---|{'---|' * len(STEPS)}"]
    kept = not any(wrong.values())
    for by, size, jitter in ((0.1, 0.02, "normal"), (0.1, 0.02, "heavy"), (0.1, 0.02, "lasting"),
                             (0.1, 0.05, "normal"), (0.05, 0.02, "normal")):  # fmt: skip
        for ranks in RANKS:
            shares = [
                sum("1" in named(seed, ranks, steps, jitter, size=size, slow=(1,), by=by) for seed in range(JOBS))
                / JOBS
                for steps in STEPS
            ]
            kept = kept and (min(shares) >= ENOUGH or (by, size, jitter) != (0.1, 0.02, "normal"))
            cells = " | ".join(f"{share:.0%}" for share in shares)
            lines.append(f"| {by:.0%} | {jitter}, {size:.0%} | {ranks} | {cells} |")
    print("\n".join(lines))
    if wanted:
        write("\n".join(lines), ROOT / "docs" / "measured.md", MARK)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
