"""NC365: links that work and lose packets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ncheck.facts.links import LinkFacts, Loss
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import Judgement, judge
from ncheck_checks.network.packets_lost import packets_lost

from .linked import ALL, Dialler, name

SENT = 200
Way = tuple[int, int]


def judged(
    lost: Mapping[tuple[int, int], int], count: int = 4, dialled: tuple[int, ...] = (), once: tuple[Way, ...] = ()
) -> Judgement:
    """Judge nodes of which so many segments of 200 were lost from one to another, as both ends saw it.

    `dialled`: only the links that these nodes opened lost any. `once`: the ways that lost none when tried alone.
    """
    nodes = {}
    for number in range(1, count + 1):
        losses = tuple(
            Loss(f"10.1.0.{number}", name(to), f"10.1.0.{to}", "10.1.0.0/24",
                 lost.get((number, to), 0), SENT, lost.get((to, number), 0), SENT,
                 alone=(number, to) not in once and (to, number) not in once)
            for to in range(1, count + 1)
            if to != number and {(number, to), (to, number)} & lost.keys() and number in (dialled or ALL)
        )  # fmt: skip
        nodes[name(number)] = Dialler(number, count, {1: {}}, losses=losses).facts()
    return judge([packets_lost], nodes)


def messages(lost: Mapping[tuple[int, int], int], count: int = 4, dialled: tuple[int, ...] = ()) -> list[str]:
    return [found.message for found in judged(lost, count, dialled).findings]


def test_a_node_into_which_packets_are_lost_is_named_alone() -> None:
    assert judged({(1, 3): 10, (2, 3): 12, (4, 3): 8}, dialled=(3,)).findings == [
        Finding("NC365", "packets-lost", Severity.ERROR, ("n3",), "packets to n3 are lost on 10.1.0.0/24: 5 % of 600",
                ("n1 to n3: 10 of 200 lost", "n2 to n3: 12 of 200 lost", "n4 to n3: 8 of 200 lost"),
                "ip -s -s link", kind="look"),
    ]  # fmt: skip


def test_it_is_named_alone_though_one_link_into_it_happened_to_lose_none() -> None:
    assert messages({(1, 3): 10, (2, 3): 10}) == ["packets to n3 are lost on 10.1.0.0/24: 5 % of 800"]


def test_what_was_lost_only_once_counts_beside_what_was_lost_twice_into_the_same_node() -> None:
    (found,) = judged({(1, 3): 10, (2, 3): 12}, once=((1, 3),)).findings
    assert (found.nodes, found.message) == (("n3",), "packets to n3 are lost on 10.1.0.0/24: 5.5 % of 800")


def test_what_was_lost_only_once_is_no_finding() -> None:
    assert judged({(1, 3): 10, (2, 3): 12}, once=((1, 3), (2, 3))).findings == []
    (found,) = judged({(1, 3): 10, (4, 2): 12}, once=((4, 2),)).findings
    assert found.nodes == ("n1", "n3")


def test_a_bad_cable_loses_both_ways() -> None:
    both = {(one, to): 20 for one in ALL for to in ALL if one != to and 2 in (one, to)}
    assert messages(both) == ["packets from and to n2 are lost on 10.1.0.0/24: 10 % of 2400"]


def test_a_node_that_loses_what_it_sends_is_named() -> None:
    assert messages({(2, to): 20 for to in (1, 3, 4)}, dialled=(2,)) == [
        "packets from n2 are lost on 10.1.0.0/24: 10 % of 600"
    ]


def test_a_single_link_names_both_its_ends_and_the_direction() -> None:
    (found,) = judged({(1, 3): 10}, dialled=(1,)).findings
    assert (found.nodes, found.message) == (
        ("n1", "n3"), "packets from n1 to n3 are lost on 10.1.0.0/24, but not from n3 to n1: 5 % of 200",
    )  # fmt: skip


def test_of_two_nodes_both_are_named_with_the_direction() -> None:
    (found,) = judged({(1, 2): 10}, count=2, dialled=(1,)).findings
    assert (found.nodes, found.message) == (
        ("n1", "n2"), "packets from n1 to n2 are lost on 10.1.0.0/24, but not from n2 to n1: 5 % of 200",
    )  # fmt: skip


def test_where_all_links_lose_packets_no_node_is_at_fault_and_none_passes() -> None:
    judgement = judged({(one, to): 6 for one in ALL for to in ALL if one != to})
    assert judgement.findings == []
    assert {verdict.outcome for verdict in judgement.verdicts} == {Outcome.UNKNOWN}
    assert judgement.verdicts[0].reason == (
        "packets are lost on 10.1.0.0/24 between all nodes: 3 % of 4800: the network is busy, or broken as a whole"
    )


def test_segments_sent_again_for_want_of_acknowledgements_are_no_loss_in_the_other_direction() -> None:
    lost = {(1, 3): 60, (2, 3): 60, (4, 3): 60, (3, 1): 6}
    assert [found.nodes for found in judged(lost).findings] == [("n3",)]


def test_it_says_nothing_of_a_subnet_in_which_no_link_was_tried() -> None:
    strange = Loss("10.9.9.9", "n2", "10.9.9.8", "10.9.9.0/24", 50, SENT, 50, SENT, alone=True)
    nodes = {name(number): Dialler(number, 4, {1: {}}, losses=(strange,)).facts() for number in ALL}
    assert judge([packets_lost], nodes).findings == []


def test_it_is_silent_about_a_packet_in_a_hundred_and_where_none_is_lost() -> None:
    assert messages({(1, 3): 2, (2, 3): 1}) == []
    assert messages({}) == []


def test_a_node_whose_kernel_counts_nothing_is_skipped_and_not_passed() -> None:
    old, *others = (Dialler(number, 3, {1: {}}).facts() for number in (1, 2, 3))
    old = {**old, LinkFacts: replace(old[LinkFacts], counts_losses=False)}  # type: ignore[type-var]
    judgement = judge([packets_lost], {name(1): old, name(2): others[0], name(3): others[1]})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED, Outcome.PASSED, Outcome.PASSED]
