"""The rounds: disjoint pairs, nobody left out, and no more of them than it takes."""

from __future__ import annotations

import pytest
from ncheck.probe.node_result import Method
from ncheck.probe.schedule import most_rounds, pair_rounds, scaling_groups
from ncheck.probe.search import searched

from .simulated import Cluster, nodes


def rounds(cluster: Cluster) -> list[tuple[tuple[str, str], ...]]:
    cluster.search()
    return cluster.rounds


def test_four_healthy_nodes_take_two_rounds() -> None:
    assert rounds(Cluster(nodes(4))) == [(("n00", "n01"), ("n02", "n03")), (("n01", "n02"), ("n03", "n00"))]


def test_two_nodes_meet_once() -> None:
    assert rounds(Cluster(nodes(2))) == [(("n00", "n01"),)]


def test_one_node_meets_nobody() -> None:
    assert pair_rounds(("n00",), ()) == ()
    assert pair_rounds((), ()) == ()


def test_of_an_odd_count_the_two_that_had_a_bye_meet_in_a_third_round() -> None:
    assert rounds(Cluster(nodes(5))) == [
        (("n00", "n01"), ("n02", "n03")),
        (("n01", "n02"), ("n03", "n04")),
        (("n00", "n04"),),
    ]


@pytest.mark.parametrize("count", [3, 4, 5, 7, 8, 15, 16, 33, 64])
def test_every_node_meets_two_others_and_in_no_round_two_at_once(count: int) -> None:
    cluster = Cluster(nodes(count), slow={"n01": 0.4}, seed=count)
    partners: dict[str, set[str]] = {name: set() for name in cluster.names}
    for pairs in rounds(cluster):
        named = [name for pair in pairs for name in pair]
        assert len(named) == len(set(named))
        for one, other in pairs:
            partners[one].add(other)
            partners[other].add(one)
    assert {name: len(met) for name, met in partners.items() if len(met) < 2} == {}


def test_a_suspect_meets_a_node_that_was_fast() -> None:
    cluster = Cluster(nodes(6), slow={"n00": 0.5, "n01": 0.5}, noise=0.0)
    assert rounds(cluster)[2:] == [(("n00", "n02"), ("n01", "n03"))]


def test_over_cpus_a_slow_node_is_measured_once_more_alone_before_it_is_called_slow() -> None:
    cluster = Cluster(nodes(6), slow={"n00": 0.3, "n03": 0.3}, noise=0.0, method=Method.TCP)
    found = cluster.search()
    assert [len(pairs) for pairs in cluster.rounds] == [3, 3, 1, 1]
    assert [one.node for one in found.slow] == ["n00", "n03"]

    busy = Cluster(nodes(6), slow={"n00": 0.3}, noise=0.0, method=Method.GLOO)
    while pairs := pair_rounds(busy.names, busy.done):
        accused = [one.node for one in searched(busy.done).accused]
        if len(busy.rounds) == 2:
            assert (accused, len(pairs)) == (["n00"], 1)
            busy.slow = {}  # what kept it busy has ended
        busy.measure(pairs)
    found = searched(busy.done)
    assert (found.slow, found.accused, found.links) == ((), (), ())


def test_the_search_ends_after_twelve_rounds_or_fewer_than_two_log_n_and_two() -> None:
    """Nearly all are slow: there are too few to bear witness for all of them, and the rounds end all the same."""
    cluster = Cluster(nodes(16), dead=frozenset(nodes(16)[2:]))
    assert len(rounds(cluster)) == 12
    assert [most_rounds(count) for count in (2, 16, 64, 232)] == [12, 12, 13, 17]


def test_a_name_that_is_listed_twice_meets_not_itself() -> None:
    assert pair_rounds(("n00", "n00", "n01"), ()) == (("n00", "n01"),)


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, []), (2, []), (3, [2]), (4, [2]), (5, [2, 4]), (16, [2, 4, 8]), (17, [2, 4, 8, 16])]
)
def test_scaling_is_measured_over_two_four_eight_and_so_on_fewer_than_all(count: int, sizes: list[int]) -> None:
    groups = scaling_groups(nodes(count))
    assert groups == tuple(nodes(count)[:size] for size in sizes)
