"""NCCL's cost model, beside what NCCL's own code says: src/graph/tuning.cc of each release, compiled and called.

nccl_times.csv has its inputs (the channels that the search found, see Graph) and its answers: the algorithm and
protocol that it takes, and the microseconds that it expects of it.
"""

from __future__ import annotations

import csv
from pathlib import Path

from ncheck.model.op import Op
from ncheck.predict.cost import Graph, Job, allowed, costs, seconds
from ncheck.predict.releases import CHECKED, NEWEST, NVLS, NVLS_TREE, PAT, RING, TREE, Algorithm, rules_of

ROWS = tuple(csv.DictReader((Path(__file__).parent / "nccl_times.csv").read_text().splitlines()))


def chosen(row: dict[str, str]) -> tuple[str, float]:
    """Return what our model says of a row, as NCCL's answer is written."""
    nodes, each, capability, count, heads, size = (
        int(row[name]) for name in ("nodes", "each", "capability", "channels", "heads", "size")
    )
    speed, rules, op = float(row["speed"]), rules_of(tuple(map(int, row["release"].split(".")))), Op(row["op"])
    job = Job(nodes * each, nodes, capability, capability, frozenset({row["processor"]}))
    ring = Graph(count, speed, speed, row["near"], row["far"])
    tree = Graph(count, float(row["tree"]), speed, row["near"], row["far"], chain=each == 1)
    graphs = {RING: ring, TREE: tree, PAT: tree}
    if heads:
        graphs |= dict.fromkeys((NVLS, NVLS_TREE), Graph(heads, float(row["inside"]), float(row["between"])))
    found = costs(rules, job, op, graphs)
    every = [one.value.lower() for one in Algorithm]
    times = {
        which: seconds(rules, job, op, which, found[which], size, 2 * count, 1)
        for which in allowed(rules, job, graphs, found, every, None)
    }
    algorithm, protocol = min(times, key=lambda which: times[which])
    return f"{algorithm.value}/{protocol.value}", times[algorithm, protocol] * 1e6


def test_what_nccl_itself_chooses_and_expects() -> None:
    ours = [chosen(row) for row in ROWS]
    differ = [
        (row, choice, time)
        for row, (choice, time) in zip(ROWS, ours, strict=True)
        if choice != row["choice"] or abs(time - float(row["microseconds"])) > 1e-4 * time
    ]
    assert differ == []
    assert len({row["release"] for row in ROWS}) == 15


def test_a_release_that_was_not_read_has_the_rules_of_the_last_one_before() -> None:
    assert rules_of((2, 21, 9)) == rules_of((2, 21, 5)) == rules_of((2, 22, 3))
    assert rules_of((2, 99, 1)) == rules_of(NEWEST) == rules_of(())
    assert rules_of((2, 4, 8)) == rules_of((2, 18, 3))
    assert sorted(CHECKED) == list(CHECKED)
