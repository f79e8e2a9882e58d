"""Who is slow is found by who met whom: all of them, nobody else, and in few rounds."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from random import Random

import pytest
from ncheck.probe.facts import ProbeFacts
from ncheck.probe.node_result import Method, NodeResult, Stage, Step, StepFailure
from ncheck.probe.results import Collective, collectives
from ncheck.probe.schedule import most_rounds
from ncheck.probe.search import PairResult, SlowLink, SlowSearch, Suspect, searched

from tests.turns import TURN

from .machines import at_half, ran
from .simulated import Cluster, nodes

SEEDS = range(60)[TURN % 3 :: 3]  # each day a third of them


def blamed(found: SlowSearch) -> set[str]:
    return {suspect.node for suspect in found.slow}


def linked(found: SlowSearch) -> set[tuple[str, str]]:
    return {link.nodes for link in found.links}


@pytest.mark.slow
@pytest.mark.parametrize("slow", [0, 1, 2])
@pytest.mark.parametrize("count", [4, 5, 7, 16, pytest.param(33, marks=pytest.mark.slow)])
def test_all_slow_nodes_are_found_none_invented_and_the_rounds_are_few(count: int, slow: int) -> None:
    for seed in SEEDS:
        random = Random(seed)  # noqa: S311
        if 2 * slow >= count - 1:
            continue
        ill = {name: random.uniform(0.3, 0.7) for name in random.sample(nodes(count), slow)}
        cluster = Cluster(nodes(count), slow=ill, seed=seed)
        found = cluster.search()
        assert (seed, blamed(found), found.links, found.unresolved) == (seed, set(ill), (), ())
        assert len(cluster.rounds) <= most_rounds(count)


# Clusters in which noise made a slow node look like a healthy one, or a healthy one slow, when each pair had met once.
NOISY = {
    3: (139, 151, 822, 1594, 3843), 4: (231, 403, 573, 1063), 5: (129, 230, 877, 994, 1004, 1248, 3155),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("slow", [0, 1, 2])
@pytest.mark.parametrize("count", NOISY)
def test_among_few_nodes_no_pair_decides_that_noise_may_have_moved(count: int, slow: int) -> None:
    if 2 * slow >= count:
        return
    for seed in (*SEEDS, *NOISY[count]):
        random = Random(1000 * count + seed)  # noqa: S311
        ill = {name: random.uniform(0.3, 0.7) for name in random.sample(nodes(count), slow)}
        cluster = Cluster(nodes(count), slow=ill, seed=seed)
        found = cluster.search()
        assert (seed, blamed(found), found.links, found.unresolved) == (seed, set(ill), (), ())
        assert len(cluster.rounds) <= most_rounds(count)


def test_few_nodes_meet_again_only_where_a_pair_is_near_a_bound() -> None:
    clear, near = (Cluster(nodes(4), slow={"n01": share}, noise=0.0) for share in (0.5, 0.82))
    clear.search()
    near.search()
    assert (len(clear.rounds), len(near.rounds)) == (2, 12)
    assert near.rounds[2:4] == [(("n01", "n03"),), (("n02", "n03"), ("n00", "n01"))]


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 4, 5, 8, 16, *(pytest.param(many, marks=pytest.mark.slow) for many in (33, 64))])
def test_a_noise_of_ten_percent_invents_no_node_and_hides_none_below_six_tenths(count: int) -> None:
    for seed in SEEDS:
        random = Random(100 * count + seed)  # noqa: S311
        slow = random.randint(0, min(3, (count - 1) // 2))
        ill = {name: random.uniform(0.2, 0.7) for name in random.sample(nodes(count), slow)}
        found = Cluster(nodes(count), slow=ill, noise=0.1, seed=seed).search()
        clearly = {name for name, share in ill.items() if share < 0.6}
        assert (seed, clearly - blamed(found), blamed(found) - set(ill), found.links) == (seed, set(), set(), ())


@pytest.mark.slow
def test_five_slow_nodes_of_232_take_seven_rounds_at_most() -> None:
    for seed in range(10):
        random = Random(seed)  # noqa: S311
        ill = {name: random.uniform(0.3, 0.6) for name in random.sample(nodes(232), 5)}
        cluster = Cluster(nodes(232), slow=ill, seed=seed)
        found = cluster.search()
        assert (seed, blamed(found), found.links, found.unresolved) == (seed, set(ill), (), ())
        assert len(cluster.rounds) <= 7


def test_a_slow_pair_of_neighbours_among_232_takes_seven_rounds_at_most() -> None:
    for seed in range(10):
        first = Random(seed).randrange(231)  # noqa: S311
        pair = nodes(232)[first : first + 2]
        cluster = Cluster(nodes(232), links={(pair[0], pair[1]): 0.5}, seed=seed)
        found = cluster.search()
        assert (blamed(found), [set(nodes) for nodes in linked(found)], found.unresolved) == (set(), [set(pair)], ())
        assert len(cluster.rounds) <= 7


def test_one_lucky_measurement_of_a_slow_node_does_not_accuse_the_link() -> None:
    """With 10 % noise this node of 0.66 of the usual speed is fast once."""
    found = Cluster(nodes(17), slow={"n11": 0.66}, noise=0.1, seed=377).search()
    assert found.links == ()


def test_a_pair_that_met_twice_is_judged_by_the_mean() -> None:
    found = Cluster(nodes(4), slow={"n01": 0.82}, noise=0.0).search()
    assert {(one.near, one.slow, one.fast) for one in found.meetings if "n01" in one.nodes} == {(True, False, False)}
    assert [suspect.node for suspect in found.unresolved] == ["n01"]


def test_sixty_four_nodes_take_no_more_than_five_rounds() -> None:
    cluster = Cluster(nodes(64), slow={"n03": 0.5, "n40": 0.6}, seed=1)
    assert blamed(cluster.search()) == {"n03", "n40"}
    assert len(cluster.rounds) <= 5


def test_of_two_nodes_nobody_is_to_blame() -> None:
    found = Cluster(nodes(2), slow={"n00": 0.3}).search()
    assert (found.slow, found.links, found.unresolved) == ((), (), ())


def test_two_nodes_below_what_was_to_be_expected_are_both_named_and_none_is_blamed() -> None:
    found = Cluster(nodes(2), slow={"n00": 0.3}, noise=0.0).search(lambda _: 24.0)
    assert found.slow == ()
    assert [suspect.node for suspect in found.unresolved] == ["n00", "n01"]


def test_two_nodes_of_which_one_is_dead_are_both_named() -> None:
    found = Cluster(nodes(2), dead=frozenset({"n01"})).search()
    assert (found.slow, [suspect.node for suspect in found.unresolved]) == ((), ["n00", "n01"])


def test_of_three_nodes_the_slow_one_is_found() -> None:
    for seed in SEEDS:
        assert blamed(Cluster(nodes(3), slow={"n01": 0.5}, seed=seed).search()) == {"n01"}


def test_a_dead_node_costs_its_partners_nothing() -> None:
    for count in (3, 4, 5, 7, 16, 33):
        found = Cluster(nodes(count), dead=frozenset({"n02"}), seed=count).search()
        assert [(suspect.node, suspect.failed) for suspect in found.slow] == [("n02", True)]
        assert (found.links, found.unresolved, len(found.fast)) == ((), (), count - 1)


def test_who_stands_between_two_dead_nodes_is_cleared_by_a_third_partner() -> None:
    cluster = Cluster(nodes(16), dead=frozenset({"n04", "n06"}))
    found = cluster.search()
    assert (blamed(found), len(found.fast)) == ({"n04", "n06"}, 14)


def test_nobody_is_blamed_where_every_pair_fails() -> None:
    cluster = Cluster(nodes(16), dead=frozenset(nodes(16)))
    found = cluster.search()
    assert (found.slow, found.links, found.fast, len(found.unresolved)) == ((), (), (), 16)
    assert len(cluster.rounds) == 2


def test_nobody_is_blamed_where_all_are_equally_slow() -> None:
    for expect in (None, 24.0):
        cluster = Cluster(nodes(16), usual=8.0, seed=3)
        found = cluster.search(lambda _, value=expect: value)  # type: ignore[misc]
        assert (found.slow, found.links, found.unresolved, len(found.fast)) == ((), (), (), 16)


def test_the_slowest_is_found_where_all_fall_short_of_the_expectation() -> None:
    assert blamed(Cluster(nodes(16), usual=16.0, slow={"n05": 0.4}).search(lambda _: 24.0)) == {"n05"}


def test_a_slow_half_is_told_as_one_group() -> None:
    for seed in SEEDS:
        half = dict.fromkeys(nodes(16)[8:], 0.5)
        cluster = Cluster(nodes(16), slow=half, seed=seed)
        found = cluster.search()
        assert (blamed(found), found.together, found.links) == (set(half), True, ())
        assert len(cluster.rounds) < 2 * log2(16) + 2


def test_a_slow_half_is_told_as_one_group_wherever_it_stands_in_the_listing() -> None:
    for seed in SEEDS:
        half = dict.fromkeys(Random(seed).sample(nodes(16), 8), 0.5)  # noqa: S311
        found = Cluster(nodes(16), slow=half, seed=seed).search()
        assert (blamed(found), found.together) == (set(half), True)


def test_every_second_node_being_slow_is_found_where_more_was_to_be_expected() -> None:
    """No two fast nodes are neighbours: after the two rounds of the ring all pairs are slow."""
    for count in (8, 16):
        half = dict.fromkeys(nodes(count)[1::2], 0.5)
        cluster = Cluster(nodes(count), slow=half, seed=count)
        found = cluster.search(lambda _: 24.0)
        assert (blamed(found), found.together) == (set(half), True)
        assert len(cluster.rounds) < 2 * log2(count) + 2


def test_a_slow_way_is_the_fault_of_the_way_and_of_no_node() -> None:
    for seed in SEEDS:
        found = Cluster(nodes(16), links={("n06", "n07"): 0.5}, seed=seed).search()
        assert (blamed(found), linked(found), len(found.fast)) == (set(), {("n06", "n07")}, 16)


def test_a_way_that_is_cut_is_the_fault_of_the_way() -> None:
    found = Cluster(nodes(16), cut=frozenset({("n02", "n03")})).search()
    assert (blamed(found), linked(found)) == (set(), {("n02", "n03")})


def test_a_slow_way_is_tried_twice() -> None:
    cluster = Cluster(nodes(4), links={("n00", "n01"): 0.5}, noise=0.0)
    found = cluster.search()
    assert cluster.rounds[2:] == [(("n02", "n03"), ("n00", "n01"))]
    assert found.links == (
        SlowLink(("n00", "n01"), tuple(
            PairResult(("n00", "n01"), number, 12.0, 24.0, slow=True, fast=False) for number in (1, 3)
        )),
    )  # fmt: skip


def test_a_slow_node_comes_with_its_witnesses() -> None:
    found = Cluster(nodes(4), slow={"n01": 0.5}, noise=0.0).search()
    assert found.slow == (
        Suspect("n01", (
            PairResult(("n00", "n01"), 1, 12.0, 24.0, slow=True, fast=False),
            PairResult(("n01", "n02"), 2, 12.0, 24.0, slow=True, fast=False),
        ), ("n00", "n02")),
    )  # fmt: skip


def test_sockets_of_loaded_machines_differ_by_less_than_half_and_nobody_is_blamed() -> None:
    for method, net in ((Method.TCP, ""), (Method.GLOO, ""), (Method.NCCL, "Socket")):
        for seed in SEEDS:
            ill = {"n01": 0.6, "n05": 0.7}
            found = Cluster(nodes(8), slow=ill, method=method, net=net, seed=seed).search()
            assert (found.slow, found.links) == ((), ())


def test_over_sockets_two_witnesses_are_needed_and_a_third_of_the_speed_is_found() -> None:
    for seed in SEEDS:
        found = Cluster(nodes(8), slow={"n01": 0.3}, method=Method.TCP, seed=seed).search()
        assert [len(suspect.witnesses) for suspect in found.slow] == [3]  # the third is met alone


def test_unlike_pairs_are_measured_against_what_each_of_them_should_reach() -> None:
    """Half of the nodes have cards of half the rate, and none of them is slow."""
    old = frozenset(nodes(8)[4:])

    def expect(pair: Collective) -> float:
        return 12.0 if old.intersection(pair.step.group) else 24.0

    found = Cluster(nodes(8), slow=dict.fromkeys(old, 0.5)).search(expect)
    assert (found.slow, found.expected, len(found.fast)) == ((), True, 8)


def test_who_reaches_the_expectation_is_not_slow_however_fast_the_others_are() -> None:
    found = Cluster(nodes(8), slow={"n03": 0.83}, noise=0.0).search(lambda _: 20.0)
    assert (found.slow, len(found.fast)) == ((), 8)


def test_where_most_beat_the_expectation_by_far_the_peers_judge() -> None:
    assert blamed(Cluster(nodes(8), slow={"n03": 0.5}).search(lambda _: 10.0)) == {"n03"}


def test_a_pair_of_which_neither_told_anything_accuses_nobody() -> None:
    pairs = [Step(1, Stage.PAIR, Method.NCCL, pair, (1, 1), (8,)) for pair in (("n00", "n01"), ("n02", "n03"))]
    silent = tuple(Collective(step, {}, step.group, ()) for step in pairs)
    assert searched(silent) == SlowSearch()


def test_a_node_that_went_silent_is_suspected_and_its_partner_is_not_blamed() -> None:
    step = Step(1, Stage.PAIR, Method.NCCL, ("n00", "n01"), (1, 1), (8,))
    lost = NodeResult(step, (), failure=StepFailure("init", "connection reset by peer"))
    found = searched(collectives({"n00": ProbeFacts((lost,))}))
    assert (found.slow, [suspect.node for suspect in found.unresolved]) == ((), ["n00", "n01"])


def test_a_pair_whose_time_was_over_while_it_went_on_accuses_nobody() -> None:
    step = Step(1, Stage.PAIR, Method.NCCL, ("n00", "n01"), (1, 1), (8,))
    late = NodeResult(step, (), failure=StepFailure("init", "it ran out of time", late=True), seconds=2.0)
    assert searched(collectives(dict.fromkeys(step.group, ProbeFacts((late,))))) == SlowSearch()


@pytest.mark.parametrize(("busbw", "share"), [(4.0, 1.0), (1.6, 0.4)])
def test_a_pair_that_had_time_for_small_messages_alone_is_compared_by_those(busbw: float, share: float) -> None:
    rounds = ((1, "n1", "n2"), (1, "n3", "n4"), (2, "n2", "n3"))
    whole = [at_half(ran(Stage.PAIR, (one, other), 1, 10.0, round_=number), 4.0) for number, one, other in rounds]
    last = at_half(ran(Stage.PAIR, ("n4", "n1"), 1, 10.0, round_=2), busbw)
    found = searched([*whole, replace(last, rows=last.rows[:1])])
    (short,) = (meeting for meeting in found.meetings if meeting.nodes == ("n4", "n1"))
    assert (round(short.usual or 0.0, 6), round(short.share or 0.0, 6), short.slow) == (4.0, share, share < 1)
    assert {meeting.usual for meeting in found.meetings if meeting is not short} == {10.0}
