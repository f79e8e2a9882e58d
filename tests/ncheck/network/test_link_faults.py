"""Links to sentences: whether a subnet carries, what is broken in few words, and whom the evidence singles out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random

from ncheck.facts.links import Link, LinkCause, LinkFacts, Reach
from ncheck.network.link_faults import Carries, SubnetFault, carries, doubt, faults

SUBNET = "10.1.0.0/24"
Way = tuple[int, int]


def name(number: int) -> str:
    return f"node{number:02d}"


def address(number: int) -> str:
    return f"10.1.0.{number}"


def links(count: int, broken: Mapping[Way, LinkCause], subnet: str = SUBNET) -> dict[str, LinkFacts]:
    """Return what so many nodes saw, each with one address: all went well but for some, by (from, to)."""
    return {name(one): _of(one, count, broken, subnet) for one in range(1, count + 1)}


def _of(one: int, count: int, broken: Mapping[Way, LinkCause], subnet: str) -> LinkFacts:
    told = tuple(
        Link(address(one), name(to), address(to), subnet, cause) for (at, to), cause in broken.items() if at == one
    )
    others = {name(other) for other in range(1, count + 1) if other != one}
    skipped = {link.target for link in told if link.cause is LinkCause.UNTRIED}
    tried = len(others) - len(skipped)
    reach = Reach(subnet, address(one), tried, tried + len(skipped) - len(told))
    return LinkFacts((reach,) if tried else (), told, frozenset(others - skipped))


def ways(sources: Iterable[int], targets: Iterable[int], cause: LinkCause = LinkCause.FILTERED) -> dict[Way, LinkCause]:
    return {(source, to): cause for source in sources for to in targets if source != to}


def both(one: Iterable[int], other: Iterable[int], cause: LinkCause = LinkCause.FILTERED) -> dict[Way, LinkCause]:
    return ways(one, other, cause) | ways(other, one, cause)


def found(count: int, broken: Mapping[Way, LinkCause]) -> tuple[SubnetFault, ...]:
    return faults(links(count, broken), SUBNET, [name(number) for number in range(1, count + 1)])


def told(count: int, broken: Mapping[Way, LinkCause]) -> list[tuple[str, tuple[str, ...]]]:
    return [(fault.summary, fault.nodes) for fault in found(count, broken)]


def members(count: int) -> list[str]:
    return [name(number) for number in range(1, count + 1)]


ALL = range(1, 5)


def test_if_all_links_work_the_subnet_connects_all_nodes() -> None:
    assert found(4, {}) == ()
    assert carries(links(4, {}), SUBNET, members(4)) == Carries(whole=True)


def test_a_node_that_nobody_reaches_is_named_and_blamed() -> None:
    broken = ways(ALL, [3])
    assert told(4, broken) == [(f"node03 cannot be reached on {SUBNET} by any node: no answer", ("node03",))]
    assert carries(links(4, broken), SUBNET, members(4)) == Carries(
        whole=False, why=f"node03 cannot be reached on {SUBNET} by any node: no answer"
    )


def test_a_node_that_reaches_nobody_is_named_and_blamed() -> None:
    assert told(4, ways([2], ALL, LinkCause.UNROUTABLE)) == [
        (f"node02 cannot reach any node on {SUBNET}: no route", ("node02",))
    ]


def test_a_node_that_is_cut_off_is_named_once() -> None:
    assert told(4, both([2], ALL, LinkCause.UNROUTABLE)) == [
        (f"node02 cannot reach any node on {SUBNET}, and no node can reach it: no route", ("node02",))
    ]


def test_two_nodes_with_the_same_trouble_share_a_sentence() -> None:
    assert told(5, ways(range(1, 6), [3, 4])) == [
        (f"node[03-04] cannot be reached on {SUBNET} by any node: no answer", ("node03", "node04"))
    ]


def test_nodes_that_reach_nobody_are_blamed_and_not_the_one_that_nobody_is_left_to_reach() -> None:
    assert told(4, ways([1, 2, 3], ALL)) == [
        (f"node[01-03] cannot reach any node on {SUBNET}: no answer", ("node01", "node02", "node03"))
    ]


def test_a_pair_is_named_with_both_sides_and_none_is_blamed() -> None:
    assert told(4, both([2], [4])) == [
        (f"node02 and node04 cannot reach each other on {SUBNET}: no answer", ("node02", "node04"))
    ]


def test_one_direction_is_distinguished_from_both() -> None:
    assert told(4, ways([4], [2], LinkCause.REFUSED)) == [
        (f"node02 reaches node04 on {SUBNET}, but node04 does not reach node02: refused", ("node02", "node04"))
    ]


def test_of_two_nodes_both_are_named() -> None:
    assert told(2, both([1], [2])) == [
        (f"node01 and node02 cannot reach each other on {SUBNET}: no answer", ("node01", "node02"))
    ]
    assert told(2, ways([1], [2])) == [
        (f"node02 reaches node01 on {SUBNET}, but node01 does not reach node02: no answer", ("node01", "node02"))
    ]


def test_a_subnet_that_leads_nowhere_is_one_sentence() -> None:
    assert told(4, ways(ALL, ALL)) == [(f"no node reaches another one on {SUBNET}: no answer", tuple(members(4)))]


def test_the_smaller_part_of_a_subnet_in_two_is_named_and_of_equal_parts_both() -> None:
    assert told(5, both([1, 2, 3], [4, 5])) == [
        (f"node[04-05] and node[01-03] cannot reach each other on {SUBNET}: no answer", ("node04", "node05"))
    ]
    assert [fault.nodes for fault in found(4, both([1, 2], [3, 4]))] == [tuple(members(4))]


def test_large_packets_lost_in_one_direction_are_reported_once_although_both_ends_saw_it() -> None:
    broken = ways([2], ALL, LinkCause.LARGE_LOST) | ways(ALL, [2], LinkCause.LARGE_LOST_BACK)
    assert told(4, broken) == [
        (f"large packets from node02 are lost on {SUBNET}, to every other node: small packets pass", ("node02",))
    ]


def test_different_causes_at_one_node_stay_one_sentence_that_counts_them() -> None:
    broken = ways([1, 2], [4], LinkCause.REFUSED) | ways([3], [4])
    assert told(4, broken) == [
        (f"node04 cannot be reached on {SUBNET} by any node: refused (2), no answer (1)", ("node04",))
    ]


def test_a_link_that_was_not_tried_is_no_blame_and_no_proof() -> None:
    broken = ways([1], [2], LinkCause.UNTRIED)
    left_out = doubt(links(3, broken), SUBNET, members(3))
    assert found(3, broken) == ()
    assert left_out is not None
    assert left_out.nodes == ("node01",)
    assert carries(links(3, broken), SUBNET, members(3)) == Carries(
        whole=None, why=f"not all links between node[01-02] were tested on {SUBNET}"
    )


def test_a_node_whose_links_could_not_be_read_is_not_blamed_and_the_subnet_is_not_known_to_carry() -> None:
    known = links(4, ways(ALL, [3], LinkCause.REFUSED))
    del known["node03"]
    assert faults(known, SUBNET, members(4)) == ()
    assert carries(known, SUBNET, members(4)) == Carries(whole=None, why="the links of node03 could not be read")


def test_fewer_good_links_than_addresses_are_unknown() -> None:
    known = links(3, {})
    known["node01"] = LinkFacts((Reach(SUBNET, address(1), 1, 1),), (), frozenset({"node02", "node03"}))
    assert carries(known, SUBNET, members(3)).whole is None


def test_nothing_tried_at_all_is_not_known() -> None:
    known = {name(number): LinkFacts((), (), frozenset()) for number in (1, 2)}
    assert carries(known, SUBNET, members(2)) == Carries(whole=None, why=f"node[01-02] tested no link on {SUBNET}")


def test_one_of_a_nodes_two_addresses_is_named_by_itself() -> None:
    known = links(3, ways([1, 2], [3]))
    second = Reach(SUBNET, "10.1.0.33", 2, 2)
    known["node03"] = LinkFacts((*known["node03"].reaches, second), (), known["node03"].tried_to)
    for number in (1, 2):
        facts = known[name(number)]
        known[name(number)] = LinkFacts((Reach(SUBNET, address(number), 3, 2),), facts.broken, facts.tried_to)
    (fault,) = faults(known, SUBNET, members(3))
    assert (fault.summary, fault.nodes) == (
        f"node03 (10.1.0.3) cannot be reached on {SUBNET} by any node: no answer", ("node03",)
    )  # fmt: skip


def test_every_link_that_failed_is_in_exactly_one_sentence_whatever_its_cause() -> None:
    chance = Random(7)  # noqa: S311  the same links in every run
    for count in range(2, 13):
        for _ in range(20):
            odds = chance.choice((0.05, 0.3, 1.0))
            broken = {way: chance.choice(list(LinkCause)) for way in ways(range(1, count + 1), range(1, count + 1))
                      if chance.random() < odds}  # fmt: skip
            seen = Counter((tried.node, tried.link.target) for fault in found(count, broken) for tried in fault.links)
            failed = {way: cause for way, cause in broken.items() if cause is not LinkCause.UNTRIED}
            assert seen == Counter((name(one), name(to)) for one, to in failed)


def routed(count: int, broken: Mapping[Way, LinkCause]) -> dict[str, LinkFacts]:
    """Return nodes of which the odd share a rack's subnet, the even another, and routers join the racks."""
    known = {}
    for one in range(1, count + 1):
        others = [other for other in range(1, count + 1) if other != one]
        inside = [other for other in others if other % 2 == one % 2]
        told = tuple(
            Link(address(one), name(to), address(to), _rack(one) if to in inside else "", cause)
            for (at, to), cause in broken.items() if at == one
        )  # fmt: skip
        reaches = tuple(
            Reach(subnet, address(one), len(ends), len(ends) - sum(link.subnet == subnet for link in told))
            for subnet, ends in ((_rack(one), inside), ("", [other for other in others if other not in inside]))
            if ends
        )
        known[name(one)] = LinkFacts(reaches, told, frozenset(map(name, others)))
    return known


def _rack(number: int) -> str:
    return f"10.{number % 2}.0.0/24"


def test_where_routers_join_racks_all_that_joins_them_counts_together() -> None:
    assert carries(routed(4, {}), "", members(4)) == Carries(whole=True)
    assert doubt(routed(4, {}), "", members(4)) is None
    across = carries(routed(4, both([1], [2])), "", members(4))
    assert across == Carries(whole=False, why="node01 and node02 cannot reach each other across the routers: no answer")
    inside = carries(routed(4, both([1], [3])), "", members(4))
    assert inside == Carries(whole=False, why="node01 and node03 cannot reach each other on 10.1.0.0/24: no answer")


def test_large_packets_that_come_back_are_good_in_the_other_direction() -> None:
    assert told(2, {(1, 2): LinkCause.LARGE_LOST, (2, 1): LinkCause.LARGE_LOST_BACK}) == [
        (
            (
                f"large packets from node01 to node02 are lost on {SUBNET}, "
                "but not from node02 to node01: small packets pass"
            ),
            ("node01", "node02"),
        )
    ]
