"""What can explain a change comes first, whatever else differs from run to run."""

from __future__ import annotations

import pytest
from ncheck.report.changes import OTHER, Change

from tests.ncheck.report.planted import KERNEL, NODES, PLANTED, SLOW, mtu, ranked

LEAST = 18  # of the planted ones: bench/changes.py has more seeds


@pytest.mark.slow
def test_a_change_that_was_planted_comes_before_what_differs_from_run_to_run() -> None:
    found = {
        name: ranked(dict.fromkeys(where, (mutate,)), slower, nodes, seed=1)[0]
        for name, mutate, where, slower, nodes, _ in PLANTED
    }
    first = [
        name for name, _, where, _, _, begins in PLANTED
        if found[name].what.startswith(begins) and found[name].nodes == where
    ]  # fmt: skip
    assert len(PLANTED) == 20
    assert len(first) >= LEAST, set(found) - set(first)


def test_what_differs_from_run_to_run_is_one_line() -> None:
    (line,) = ranked({}, "", (), seed=2)
    assert (line.how, line.nodes, line.topic) == (OTHER, NODES, "differs in each run")


def test_a_setting_of_the_slow_node_explains_more_than_a_new_kernel_on_all() -> None:
    both = {node: (KERNEL, *((mtu,) if node in SLOW else ())) for node in NODES}
    kernel = Change(OTHER, NODES, "kernel: 5.15.0-105-generic -> 5.15.0-119-generic", topic="versions")
    own = Change(OTHER, SLOW, "MTU of interface eno1: 1500 -> 9000", topic="network")
    assert ranked(both, "between", SLOW, seed=3)[:2] == [own, kernel]
    assert ranked(both, "between", NODES[:1], seed=3)[:2] == [kernel, own]  # it is not on the slow one
