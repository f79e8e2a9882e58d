"""NC366: a node to which few new connections get through at once."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.links import Burst, Loss
from ncheck.judge import judge
from ncheck.model.finding import Finding, Severity
from ncheck_checks.network.new_connections_limited import new_connections_limited

from .linked import Dialler, name


def findings(late: Mapping[tuple[int, int], int], count: int = 4, losses: tuple[Loss, ...] = ()) -> list[Finding]:
    """Judge nodes of which so many connections of ten were late from one to another."""
    nodes = {}
    for number in range(1, count + 1):
        bursts = tuple(
            Burst(f"10.1.0.{number}", name(to), f"10.1.0.{to}", "10.1.0.0/24", 10, behind)
            for (one, to), behind in late.items()
            if one == number
        )
        nodes[name(number)] = Dialler(number, count, {1: {}}, bursts=bursts, losses=losses).facts()
    return judge([new_connections_limited], nodes).findings


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
