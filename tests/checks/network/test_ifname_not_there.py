"""NC330: the interface that the user named is not there, is of no use, or joins the nodes to nothing."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.links import Link, LinkCause, LinkFacts, Reach
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.ifname_not_there import ifname_not_there


def node(named: str | None, *words: str, links: LinkFacts | None = None) -> Facts:
    local = (Address("127.0.0.1", 8, "host"),)
    nics = [Interface("lo", 1, Kind.LOOPBACK, up=True, running=True, mtu=65536, addresses=local)]
    for index, word in enumerate(words, 2):
        name, ip, *rest = word.split()
        addresses = (Address(ip, 24),) if ip != "-" else ()
        up, running = "down" not in rest, not {"down", "dark"} & {*rest}
        nic = Interface(name, index, Kind.PHYSICAL, up=up, running=running, mtu=1500, addresses=addresses)
        nics.append(replace(nic, default_route="default" in rest))
    return {NicFacts: NicFacts(tuple(nics)), JobFacts: JobFacts(named), LinkFacts: links or Absent("not asked")}


def said(*nodes: Facts) -> list[tuple[tuple[str, ...], str]]:
    named = {f"n{number}": facts for number, facts in enumerate(nodes, 1)}
    return [(found.nodes, found.message) for found in judge([ifname_not_there], named).findings]


def test_an_interface_that_no_node_has_is_reported_with_the_existing_ones() -> None:
    nodes = {"n1": node("eth9", "eno1 10.1.0.1"), "n2": node("eth9", "eth0 10.1.0.2")}
    assert judge([ifname_not_there], nodes).findings == [
        Finding("NC330", "ifname-not-there", Severity.ERROR, ("n1", "n2"),
                "--ifname eth9: no node has an interface of that name; there are eno1, eth0", (), "ip -br address",
                kind="look"),
    ]  # fmt: skip


def test_the_nodes_that_lack_it_or_where_it_is_of_no_use_are_named() -> None:
    found = said(node("eth0", "eth0 10.1.0.1"), node("eth0", "eno1 10.1.0.2"), node("eth0", "eth0 10.1.0.3 down"),
                 node("eth0", "eth0 10.1.0.4 dark"), node("eth0", "eth0 -"))  # fmt: skip
    assert found == [
        (("n2",), "--ifname eth0: eth0 is missing on n2"),
        (("n3",), "--ifname eth0: eth0 is down on n3"),
        (("n4",), "--ifname eth0: eth0 has no link on n4"),
        (("n5",), "--ifname eth0: eth0 has no address that other nodes can reach on n5"),
    ]


def test_an_interface_outside_every_shared_network_is_reported() -> None:
    assert said(node("eth0", "eth0 10.1.0.1"), node("eth0", "eth0 10.2.0.2")) == [
        (("n1", "n2"), "--ifname eth0: the nodes have it in different subnets: 10.1.0.0/24 on n1, 10.2.0.0/24 on n2")
    ]
    assert said(node("lo", "eth0 10.1.0.1")) == [
        (("n1",), "--ifname lo: lo is the loopback, which reaches no other node on n1")
    ]
    assert said(node("br0", "br0 172.18.0.1"), node("br0", "br0 172.18.0.1")) == [
        (("n1", "n2"), "--ifname br0: n[1-2] have the same address there, 172.18.0.1")
    ]


def test_an_interface_over_which_no_node_is_reached_is_reported() -> None:
    lost = [Link(f"10.1.0.{a}", f"n{b}", f"10.1.0.{b}", "10.1.0.0/24", LinkCause.FILTERED) for a, b in ((1, 2), (2, 1))]
    links = [
        LinkFacts((Reach("10.1.0.0/24", f"10.1.0.{own}", 1, 0),), (link,), frozenset({link.target}))
        for own, link in zip((1, 2), lost, strict=True)
    ]
    nodes = [node("eth0", f"eth0 10.1.0.{own}", links=links[own - 1]) for own in (1, 2)]
    assert said(*nodes) == [
        (("n1", "n2"), "--ifname eth0: n1 and n2 cannot reach each other on 10.1.0.0/24: no answer")
    ]


def test_it_is_silent_where_the_interface_joins_all_nodes() -> None:
    same = {"n1": node("eth0", "eth0 10.1.0.1"), "n2": node("eth0", "eth0 10.1.0.2")}
    routed = {"n1": node("eth0", "eth0 10.1.0.1 default"), "n2": node("eth0", "eth0 10.2.0.2 default")}
    for nodes in (same, routed):
        judged = judge([ifname_not_there], nodes)
        assert (judged.findings, {one.outcome for one in judged.verdicts}) == ([], {Outcome.PASSED})


def test_it_is_silent_and_skipped_where_no_interface_was_asked_for() -> None:
    judged = judge([ifname_not_there], {"n1": node(None, "eth0 10.1.0.1"), "n2": node(None, "eth0 10.1.0.2")})
    assert (judged.findings, {one.outcome for one in judged.verdicts}) == ([], {Outcome.SKIPPED})
