"""Scaling efficiency: each size against the best of fewer nodes, by what its own links should give."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.model.op import Op
from ncheck.probe.node_result import Method, Stage
from ncheck.probe.results import Collective
from ncheck.probe.search import no_expectation
from ncheck.probe.shortfalls import scaled

from tests.ncheck.probe.machines import ran

NAMES = tuple(f"n{number}" for number in range(1, 9))


def run(count: int, busbw: float, ranks: int = 8, method: Method = Method.NCCL) -> Collective:
    stage = Stage.INSIDE if count == 1 else Stage.SCALING if count < len(NAMES) else Stage.ALL
    return ran(stage, NAMES[:count], ranks, busbw, method=method)


def efficiencies(*runs: Collective, **expected: float) -> list[float | None]:
    """Return the efficiency of each size; `expected` maps "n4" to what four nodes should give."""
    found = scaled(runs, lambda one: expected.get(f"n{len(one.step.group)}"))
    return [None if one.efficiency is None else round(one.efficiency, 3) for one in found]


def test_each_size_is_held_against_the_best_of_fewer_nodes() -> None:
    runs = (run(2, 90.0), run(4, 98.0), run(8, 70.0))
    assert efficiencies(*runs, n2=100.0, n4=100.0, n8=100.0) == [None, 1.089, 0.714]


def test_a_fall_that_the_links_explain_costs_nothing() -> None:
    runs = (run(1, 480.0), run(2, 470.0), run(4, 390.0))
    assert efficiencies(*runs, n1=490.0, n2=490.0, n4=400.0) == [None, 0.979, 0.995]


def test_more_than_is_expected_counts_as_all_of_it() -> None:
    """A tree between two nodes carries more than the least that is expected of them; four nodes are no worse for it."""
    assert efficiencies(run(2, 96.0), run(4, 48.0), n2=50.0, n4=50.0) == [None, 0.96]


def test_one_node_is_compared_only_where_it_is_known_what_to_expect() -> None:
    assert efficiencies(run(1, 480.0), run(4, 100.0)) == [None, None]


def test_more_nodes_that_only_had_time_for_smaller_messages_are_not_compared_where_nobody_knows() -> None:
    few, more = run(2, 100.0), run(4, 30.0)
    (row,) = more.rows
    small = replace(more, rows=(replace(row, size=row.size // 16, seconds=row.seconds / 16),))
    assert efficiencies(few, more) == [None, 0.562]
    assert efficiencies(few, small) == [None, None]


@pytest.mark.parametrize(("ranks", "efficiency"), [(8, 1.875), (1, 1.0)])
def test_two_nodes_count_as_if_a_tree_had_carried_them_where_nobody_knows(ranks: int, efficiency: float) -> None:
    """A tree between two nodes of 8 makes 2R(n-1)/n of R: 1.875. With one rank each it makes no more than R."""
    assert efficiencies(run(2, 100.0, ranks), run(4, 100.0, ranks)) == [None, efficiency]


@pytest.mark.parametrize(
    ("op", "efficiency"), [(Op.ALL_GATHER, 1.0), (Op.REDUCE_SCATTER, 1.0), (Op.ALL_TO_ALL, None), (Op.SEND_RECV, None)]
)
def test_only_all_reduce_has_a_tree_and_what_shrinks_by_nature_is_not_compared(op: Op, efficiency: float) -> None:
    runs = [replace(one, step=replace(one.step, op=op)) for one in (run(2, 100.0), run(4, 100.0))]
    assert efficiencies(*runs) == [None, efficiency]


def test_groups_with_other_numbers_of_ranks_are_not_compared() -> None:
    assert efficiencies(run(4, 100.0), ran(Stage.ALL, NAMES, (8,) * 7 + (4,), 100.0)) == [None, None]


def test_a_run_on_cpus_and_one_that_failed_tell_nothing() -> None:
    failed = ran(Stage.ALL, NAMES, 8, None)
    assert scaled((run(4, 1.0, 1, Method.GLOO), failed), no_expectation) == ()


def test_of_nodes_by_themselves_the_median_counts() -> None:
    alone = [ran(Stage.INSIDE, (name,), 8, busbw) for name, busbw in (("n1", 200.0), ("n2", 480.0), ("n3", 470.0))]
    (one,) = scaled(alone, no_expectation)
    assert (one.nodes, round(one.busbw)) == (("n3",), 470)
