"""NC364: two cables of a node in each other's port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ncheck.facts.login import IdentityFacts
from ncheck.facts.neighbours import Neighbour, NeighbourFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.cables_swapped import cables_swapped

WIRES = (0, 1, 2)


def mac(node: int, wire: int) -> str:
    return f"02:00:00:00:0{node}:0{wire}"


def nic(node: int, wire: int) -> Interface:
    return Interface(
        f"eth{wire}", wire + 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, mac=mac(node, wire),
        addresses=(Address(f"10.{wire}.0.{node}", 24),),
    )  # fmt: skip


def plugged(wire: int, *, swapped: bool) -> int:
    """Return the interface that is plugged into this wire, or the wire that this interface is plugged into."""
    return {1: 2, 2: 1}.get(wire, wire) if swapped else wire


def seen(node: int, others: Iterable[int], swapped: Iterable[int]) -> Iterator[Neighbour]:
    """Yield what a node finds: it asks by eth1 for 10.1.0.x, and who is plugged into the same wire answers."""
    for other in others:
        for wire in WIRES:
            asked_on = plugged(wire, swapped=node in swapped)
            answers = plugged(asked_on, swapped=other in swapped)
            yield Neighbour(f"10.{wire}.0.{other}", mac(other, answers), f"eth{wire}")


def cluster(count: int, *swapped: int) -> dict[str, Facts]:
    nodes = range(1, count + 1)
    return {
        f"n{node}": {
            NicFacts: NicFacts(tuple(nic(node, wire) for wire in WIRES)),
            NeighbourFacts: NeighbourFacts(tuple(seen(node, (one for one in nodes if one != node), swapped))),
            IdentityFacts: Absent("not asked here"),
        }
        for node in nodes
    }


def with_neighbours(nodes: dict[str, Facts], node: str, *more: Neighbour) -> dict[str, Facts]:
    return {**nodes, node: {**nodes[node], NeighbourFacts: NeighbourFacts(more)}}


def test_the_node_that_all_others_see_crossed_is_named() -> None:
    pairs = (("n1", "n2", 2), ("n2", "n1", 1), ("n2", "n3", 3), ("n3", "n2", 2))
    lines = tuple(
        f"{one} finds 10.{wire}.0.{number} (eth{wire} of {other}) at eth{3 - wire}, by its eth{wire}"
        for one, other, number in pairs
        for wire in (1, 2)
    )
    assert judge([cables_swapped], cluster(3, 2)).findings == [
        Finding("NC364", "cables-swapped", Severity.ERROR, ("n2",),
                "wires are crossed at n2: its addresses answer at the wrong interfaces", lines, "ip -br link",
                kind="look"),
    ]  # fmt: skip


def test_of_two_nodes_both_are_named() -> None:
    assert [found.nodes for found in judge([cables_swapped], cluster(2, 2)).findings] == [("n1", "n2")]


def test_two_crossed_nodes_among_many_are_both_named() -> None:
    assert [found.nodes for found in judge([cables_swapped], cluster(6, 2, 5)).findings] == [("n2",), ("n5",)]


def test_it_is_silent_where_each_address_answers_at_its_interface_and_about_routers() -> None:
    assert judge([cables_swapped], cluster(3)).findings == []
    router = Neighbour("10.1.0.2", "02:ff:ff:ff:ff:ff", "eth1")
    assert judge([cables_swapped], with_neighbours(cluster(3), "n1", router)).findings == []


def test_it_is_silent_where_one_interface_answers_for_all_on_one_wire() -> None:
    nodes = cluster(3)
    for node in (1, 2, 3):
        found = (Neighbour(f"10.{wire}.0.{one}", mac(one, 0), f"eth{wire}") for one in (1, 2, 3) for wire in WIRES)
        nodes = with_neighbours(nodes, f"n{node}", *found)
    assert judge([cables_swapped], nodes).findings == []


def test_it_is_silent_where_most_nodes_look_crossed() -> None:
    nodes = cluster(4)
    for node in (1, 2, 3, 4):
        found = (
            Neighbour(f"10.{wire}.0.{one}", mac(one, plugged(wire, swapped=True)), f"eth{wire}")
            for one in (1, 2, 3, 4)
            for wire in WIRES
        )
        nodes = with_neighbours(nodes, f"n{node}", *found)
    assert judge([cables_swapped], nodes).findings == []


def test_it_is_silent_about_interfaces_of_one_subnet_and_about_a_bond() -> None:
    for address, own in (("10.1.0.99", mac(2, 2)), ("10.2.0.2", mac(2, 1))):
        nodes = cluster(3)
        pair = (nic(2, 1), Interface("eth2", 4, Kind.PHYSICAL, up=True, running=True, mtu=1500, mac=own,
                                     addresses=(Address(address, 24),)))  # fmt: skip
        nodes["n2"] = {**nodes["n2"], NicFacts: NicFacts(pair)}
        crossed = (Neighbour("10.1.0.2", own, "eth1"), Neighbour(address, mac(2, 1), "eth1"))
        for node in ("n1", "n3"):
            nodes = with_neighbours(nodes, node, *crossed)
        nodes = with_neighbours(nodes, "n2")
        assert judge([cables_swapped], nodes).findings == []
