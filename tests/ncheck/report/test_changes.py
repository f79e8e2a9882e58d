"""What can explain a change comes first, whatever else differs from run to run."""

from __future__ import annotations

from cProfile import Profile
from dataclasses import replace

import pytest
from ncheck.differences import differences
from ncheck.facts.neighbours import Neighbour, NeighbourFacts
from ncheck.model.report import Report
from ncheck.report.changes import OTHER, Change, Worse, got_worse

from tests.ncheck.report.measurements import two_operations
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


def test_thousands_of_parts_that_came_and_went_are_compared_in_linear_time() -> None:
    """A recording may be somebody else's."""
    before, after = (
        dict[type[object], object](
            {NeighbourFacts: NeighbourFacts(tuple(Neighbour(f"{side} {at}", "m", "eth0") for at in range(2000)))}
        )
        for side in "ab"
    )
    profile = Profile()
    found = profile.runcall(lambda: list(differences(before, after)))
    assert len(found) == 4000
    assert sum(entry.callcount for entry in profile.getstats()) < 200 * len(found)


def test_a_node_is_slower_in_one_operation_however_fast_it_is_in_another(reports: dict[str, Report]) -> None:
    old = two_operations(reports["healthy"])
    slower = [replace(one, busbw=20.0) if one.op == "all-to-all" and "gpu03" in one.nodes else one
              for one in old.probe.pairs]  # fmt: skip
    new = replace(old, probe=replace(old.probe, pairs=tuple(slower)))
    assert got_worse(old, new) == Worse(between=True, nodes=frozenset({"gpu03"}))
    assert got_worse(old, old) == Worse()
