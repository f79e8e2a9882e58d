"""How often `ncheck diff` puts a change that was planted before what differs from run to run.

Two nodes of a recorded cluster are recorded twice. The second time one thing is another one (tests/ncheck/report/
planted.py has 20 of them), and so is what differs in each run. The bench ends with an error where fewer than
18 of 20 come first. With --write the figures go to docs/measured.md.
"""

from __future__ import annotations

import argparse
import sys

from fanout import ROOT, write

MARK = ("<!-- changes: written by bench/changes.py --write -->", "<!-- end of changes -->")
LEAST = 18


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.ncheck.report.planted import HARMLESS, PLANTED, ranked

    first = {
        name: sum(
            found.what.startswith(begins) and found.nodes == where
            for seed in range(given.seeds)
            for found in ranked(dict.fromkeys(where, (mutate,)), slower, nodes, seed)[:1]
        )
        for name, mutate, where, slower, nodes, begins in PLANTED
    }
    rows = "\n".join(f"| {name} | {count} of {given.seeds} |" for name, count in first.items())
    kind = (
        f"{len(PLANTED)} changes, one in each of {given.seeds} pairs of recordings, beside {HARMLESS} values of each "
        f"node that differ in each run: {sum(first.values())} of {len(PLANTED) * given.seeds} came first"
    )
    print(f"{kind}.\n\n| planted | first |\n|---|---:|\n{rows}")
    if given.write:
        section = f"## What changed\n\n{kind}. See `ncheck diff`.\n\n| planted | first |\n|---|---:|\n{rows}"
        write(section, ROOT / "docs" / "measured.md", MARK)
    if sum(first.values()) * 20 < LEAST * len(PLANTED) * given.seeds:
        sys.exit(f"fewer than {LEAST} of 20 came first")


if __name__ == "__main__":
    main()
