"""NC366: a node to which few new connections get through at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ncheck.facts.links import Burst, LinkCause, Loss
from ncheck.model.check import Check
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.network.link_filtered import link_filtered
from ncheck_checks.network.link_one_way import link_one_way
from ncheck_checks.network.new_connections_limited import new_connections_limited

from .linked import Broken, Dialler, name


def findings(  # noqa: PLR0913, PLR0917  each is one thing that the nodes saw
    late: Mapping[tuple[int, int], int],
    count: int = 4,
    losses: tuple[Loss, ...] = (),
    lost: Mapping[tuple[int, int], int] = MappingProxyType({}),
    broken: Broken = MappingProxyType({}),
    checks: Sequence[Check] = (new_connections_limited,),
) -> list[Finding]:
    """Judge nodes of which so many connections of ten were late from one to another, and so many of these lost."""
    nodes = {}
    for number in range(1, count + 1):
        bursts = tuple(
            Burst(f"10.1.0.{number}", name(to), f"10.1.0.{to}", "10.1.0.0/24", 10, behind, lost.get((one, to), 0))
            for (one, to), behind in late.items()
            if one == number
        )
        nodes[name(number)] = Dialler(number, count, {1: broken}, bursts=bursts, losses=losses).facts()
    return judge(checks, nodes).findings


def test_a_node_to_which_connections_of_several_others_are_late_is_named() -> None:
    assert findings({(1, 3): 8, (2, 3): 9, (4, 3): 10}) == [
        Finding("NC366", "new-connections-limited", Severity.ERROR, ("n3",),
                "new connections to n3 on 10.1.0.0/24 are slow: 27 of 30 were not open after 0.9 s",
                ("from n1: 8 of 10", "from n2: 9 of 10", "from n4: 10 of 10"), "sudo nft list ruleset", kind="look"),
    ]  # fmt: skip


def test_of_two_nodes_one_is_enough() -> None:
    assert [found.nodes for found in findings({(1, 2): 7}, count=2)] == [("n2",)]


def test_it_is_silent_about_one_pair_and_about_a_few_that_are_late() -> None:
    assert findings({(1, 3): 10}) == []
    assert findings({(1, 3): 4, (2, 3): 4, (4, 3): 3}) == []
    assert findings({}) == []


def test_it_leaves_a_node_that_loses_packets_to_packets_lost() -> None:
    lost = Loss("10.1.0.1", "n3", "10.1.0.3", "10.1.0.0/24", 50, 200, 0, 200, alone=True)
    assert findings({(1, 3): 6, (2, 3): 6, (4, 3): 7}, losses=(lost,)) == []


# Half of the flows of n3 are lost, and two single connections that were by chance among these.
HALF = {(1, 3): 6, (2, 3): 4, (4, 3): 5, (3, 1): 5, (3, 4): 3}
CHANCE = {(1, 3): LinkCause.FILTERED, (3, 2): LinkCause.FILTERED}
ALL = (new_connections_limited, link_one_way, link_filtered)


def test_a_node_that_loses_a_part_of_the_flows_is_one_finding_and_single_links_of_it_are_none() -> None:
    (found,) = findings(HALF, lost=HALF, broken=CHANCE, checks=ALL)
    assert (found.code, found.severity, found.nodes) == ("NC366", Severity.ERROR, ("n3",))
    assert found.message == (
        "23 of 50 connections from and to n3 on 10.1.0.0/24 get no answer, the others are quick: a part of the flows "
        "is lost (one leg of a bond, one path); no other subnet is known to connect all nodes, so a job hangs at its "
        "start"
    )
    assert found.evidence[0] == "n1 10.1.0.1 to n3 10.1.0.3: filtered (6 of 10 connections that began at once)"
    assert (found.where, found.fix, found.kind) == ("n3", "ip -s -s link", "look")


def test_a_part_of_the_flows_between_two_nodes_names_both() -> None:
    for count in (2, 4):
        (found,) = findings({(1, 2): 5, (2, 1): 4}, count, lost={(1, 2): 5, (2, 1): 4}, checks=ALL)
        assert found.nodes == ("n1", "n2")
        assert found.message.startswith("9 of 20 connections between n1 and n2 on 10.1.0.0/24 get no answer, ")


def test_what_opens_later_what_never_opens_and_what_may_be_chance_is_no_lost_part_of_the_flows() -> None:
    (limited,) = findings(HALF, lost={})
    assert limited.message == "new connections to n3 on 10.1.0.0/24 are slow: 11 of 20 were not open after 0.9 s"
    assert findings({(1, 3): 5}, lost={(1, 3): 4}) == []
    assert findings({(1, 3): 10}, lost={(1, 3): 10}) == []
    assert findings({(1, 3): 2}, lost={(1, 3): 2}) == []
    assert [one.code for one in findings({(1, 3): 2}, lost={(1, 3): 2}, broken=CHANCE, checks=ALL)] == ["NC313"] * 2
