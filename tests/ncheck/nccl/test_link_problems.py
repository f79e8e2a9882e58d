"""What broken links weigh, and lines about them that can be typed whatever a node calls its interfaces."""

from __future__ import annotations

import shlex

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.links import Link, LinkCause, LinkFacts, Reach
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.check import Inconclusive, Problem
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.fact import Absent
from ncheck.nccl.link_problems import ALSO, READS, Weight, on, problems
from ncheck.parse.interface_names import Kind


def facts_of_node(number: int, rack: int, links: LinkFacts) -> Facts:
    """Return a node that has an address in the subnet of its rack, and a router behind it."""
    address = Address(f"10.{rack}.0.{number}", 24)
    nic = Interface("eth0", 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(address,), default_route=True)
    facts: dict[type[object], object] = dict.fromkeys((*READS, *ALSO), Absent("not asked"))
    return {**facts, NicFacts: NicFacts((nic,)), LinkFacts: links, EnvironmentFacts: EnvironmentFacts({}, {})}


def racks(*, broken: bool) -> Cluster:
    """Return n1 and n2 in one rack, n3 in another: n1 and n3 may not reach each other across the routers."""
    return Cluster.of(
        {f"n{one}": facts_of_node(one, rack, _tried(one, rack, broken=broken)) for one, rack in _RACKS.items()}
    )


_RACKS = {1: 1, 2: 1, 3: 2}


def _tried(one: int, rack: int, *, broken: bool) -> LinkFacts:
    own, others = f"10.{rack}.0.{one}", {to: there for to, there in _RACKS.items() if to != one}
    lost = {to: there for to, there in others.items() if broken and {one, to} == {1, 3}}
    told = tuple(Link(own, f"n{to}", f"10.{there}.0.{to}", "", LinkCause.FILTERED) for to, there in lost.items())
    inside = list(others.values()).count(rack)
    beyond = len(others) - inside
    reaches = (Reach("", own, beyond, beyond - len(told)), *([Reach(f"10.{rack}.0.0/24", own, 1, 1)] if inside else []))
    return LinkFacts(reaches, told, frozenset(f"n{to}" for to in others))


def said(cluster: Cluster, weight: Weight) -> list[Problem | Inconclusive]:
    return list(problems(cluster, weight))


def test_across_routers_a_pair_without_another_connection_is_an_error() -> None:
    (problem,) = said(racks(broken=True), Weight.NEEDED)
    assert isinstance(problem, Problem)
    assert problem.nodes == ("n1", "n3")
    assert problem.message.startswith(
        "n1 and n3 cannot reach each other across the routers: no answer; no other subnet"
    )
    assert said(racks(broken=True), Weight.SPARE) == []


def test_racks_that_are_joined_by_routers_are_whole_and_nothing_is_in_doubt() -> None:
    assert [said(racks(broken=False), weight) for weight in Weight] == [[], [], [], []]


def test_what_a_node_calls_its_interface_runs_nowhere() -> None:
    hostile = "x;reboot"
    assert shlex.split(on("n1", "ip", "link", "show", hostile).line) == ["ip", "link", "show", hostile]
