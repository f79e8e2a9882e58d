"""The search between groups of nodes finds what is slow, and names nothing that is not. What is slow is known here."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from ncheck.probe.boundary import OVER_SOCKETS, BadNode, Boundary, Found, can_answer, find, most_tests

from .leaves import Leaves, nodes

SEEDS = 5  # bench/boundary.py has 1,000
OTHERS = tuple(f"leaf{number}" for number in range(16) if number != 6)


def searched(
    *, guessed: bool = False, least: int = 2, leaves: tuple[int, int] = (16, 16), **faults: Any
) -> list[Found]:
    """Return what each of some clusters shows, in no more tests than are promised."""
    found = []
    for seed in range(SEEDS):
        cluster = Leaves(*leaves, seed=seed, **faults)
        found.append(cluster.search(guessed=guessed, least=least))
        assert cluster.tests < most_tests(cluster.groups)
    return found


def test_256_nodes_take_at_most_60_tests() -> None:
    assert most_tests(Leaves(16, 16).groups) == 60


@pytest.mark.parametrize("least", [2, 3])
def test_one_slow_uplink_is_the_boundary_between_its_leaf_and_the_others_and_no_node_is_named(least: int) -> None:
    for found in searched(least=least, uplinks={6: 0.5}):
        (boundary,) = found.boundaries
        assert (boundary.one, set(boundary.other), found.nodes, found.unsure) == (("leaf6",), {*OTHERS}, (), False)


@pytest.mark.parametrize("least", [2, 3])
def test_one_slow_node_is_named_by_others_of_its_own_leaf(least: int) -> None:
    for found in searched(least=least, slow={"n0100": 0.5}):
        assert found == Found(nodes=found.nodes)
        assert [(bad.node, {int(name[1:]) // 16 for name in bad.witnesses}) for bad in found.nodes] == [("n0100", {6})]


def test_a_slow_node_and_a_slow_uplink_are_both_found_even_of_one_leaf() -> None:
    for leaf in (2, 6):
        for found in searched(slow={"n0100": 0.5}, uplinks={leaf: 0.4}):
            assert ([bad.node for bad in found.nodes], found.unsure) == (["n0100"], False)
            assert [boundary.one for boundary in found.boundaries] == [(f"leaf{leaf}",)]


def test_where_nothing_is_slow_nothing_is_named() -> None:
    assert searched() == [Found()] * SEEDS


def test_two_leaves_that_are_slow_with_each_other_alone_are_the_boundary() -> None:
    for found in searched(between={(3, 9): 0.5}):
        assert found == Found(boundaries=(Boundary(("leaf3",), ("leaf9",)),))


def test_leaves_of_two_pods_are_the_sides_of_what_is_slow_between_the_pods() -> None:
    pods = {(one, other): 0.5 for one in range(4) for other in range(4, 8)}
    for found in searched(leaves=(8, 8), between=pods):
        assert [set(boundary.one) for boundary in found.boundaries] == [{f"leaf{number}" for number in range(4)}]
        assert [set(boundary.other) for boundary in found.boundaries] == [{f"leaf{number}" for number in range(4, 8)}]


def test_where_all_leaves_are_slow_with_one_another_none_of_them_is_blamed() -> None:
    for found in searched(leaves=(8, 8), uplinks=dict.fromkeys(range(8), 0.5)):
        assert found == Found(boundaries=(Boundary(tuple(f"leaf{number}" for number in range(8))),))


def test_an_uplink_that_only_several_nodes_at_once_fill_is_found_by_so_many() -> None:
    for found in searched(uplinks={6: 0.5}, takes=3):
        assert [(boundary.one, boundary.least) for boundary in found.boundaries] == [(("leaf6",), 4)]


def test_of_two_leaves_one_is_never_blamed_for_the_other() -> None:
    for found in searched(leaves=(2, 4), uplinks={1: 0.5}):
        assert found == Found(boundaries=(Boundary(("leaf0",), ("leaf1",)),))


def test_neighbours_of_the_inventory_serve_where_nobody_knows_the_leaves() -> None:
    assert [[bad.node for bad in found.nodes] for found in searched(guessed=True, slow={"n0100": 0.5})] == [
        ["n0100"]
    ] * SEEDS
    for found in searched(guessed=True, uplinks={6: 0.5}):
        assert [boundary.one for boundary in found.boundaries] == [("n0096",)]


@pytest.mark.parametrize("slow", [{}, {"n0100": 0.5}])
def test_nothing_is_claimed_where_the_inventory_is_not_in_the_order_of_the_leaves(slow: dict[str, float]) -> None:
    names = nodes(256)
    shuffled = [*names]
    Random(3).shuffle(shuffled)  # noqa: S311  no secret
    for listed in ([*names[5:], *names[:5]], shuffled):
        found = searched(guessed=True, listed=listed, slow=slow, uplinks={6: 0.5})
        assert [one.explained for one in found] == [False] * SEEDS


SIZES = [  # of the groups; the fewest nodes of a set; what may be found where somebody names the groups, and else
    ((2, 2), 2, True, False), ((1, 1), 2, False, False), ((3,), 2, False, False), ((3, 1), 2, True, False),
    ((2, 1, 1), 2, False, False), ((2, 2, 1), 2, True, True), ((3, 3), 3, False, False), ((4, 1), 3, True, False),
    ((4, 4), 3, True, False), ((3, 3, 3), 3, False, False), ((), 2, False, False),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "least", "named", "guessed"), SIZES)
def test_groups_that_can_show_nothing_are_not_measured(
    sizes: tuple[int, ...], least: int, *, named: bool, guessed: bool
) -> None:
    names = iter(nodes(9))
    groups = {f"group{place}": tuple(next(names) for _ in range(size)) for place, size in enumerate(sizes)}
    assert can_answer(groups, guessed=False, least=least) is named
    assert can_answer(groups, guessed=True, least=least) is guessed
    assert bool(find(groups, {}, least=least).wanted) is named


def test_nothing_is_claimed_of_fewer_than_three_groups_that_nobody_named_nor_measured_for_it() -> None:
    cluster = Leaves(2, 4, uplinks={1: 0.5})
    assert (cluster.search(guessed=True), cluster.tests) == (Found(unsure=True), 0)


def test_a_group_of_which_every_node_is_slow_names_no_node() -> None:
    slow = dict.fromkeys(nodes(256)[96:112], 0.5)
    for found in searched(slow=slow):
        assert (found.boundaries, found.nodes, found.unsure) == ((), (), True)


def test_by_pairs_alone_the_two_sides_are_found() -> None:
    for seed in range(SEEDS):
        cluster = Leaves(4, 4, seed=seed, uplinks={2: 0.4})
        found = cluster.search_pairs([("leaf1", "leaf2"), ("leaf2", "leaf3")])
        (boundary,) = found.boundaries
        assert {frozenset(boundary.one), frozenset(boundary.other)} == {
            frozenset({"leaf2"}),
            frozenset({"leaf0", "leaf1", "leaf3"}),
        }
        cluster = Leaves(4, 4, seed=seed)
        assert cluster.search_pairs([("leaf1", "leaf2")]) == Found(unsure=True)


def test_over_sockets_one_measurement_of_a_busy_machine_decides_nothing() -> None:
    assert [OVER_SOCKETS.low(shares) for shares in ((0.1,), (0.1, 0.1), (0.7,), (0.3, 1.0), (0.55,) * 4)] == [
        None, True, False, False, False,
    ]  # fmt: skip


def test_a_bad_node_has_witnesses_that_are_not_itself() -> None:
    (found,) = {found.nodes for found in searched(leaves=(3, 4), slow={"n0005": 0.4})}
    assert found == (BadNode("n0005", found[0].witnesses),)
    assert "n0005" not in found[0].witnesses
