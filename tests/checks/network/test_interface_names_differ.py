"""NC302: names matter within a shared subnet, and only where no name is common to all."""

from __future__ import annotations

from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.interface_names_differ import interface_names_differ


def node(**addresses: str) -> Facts:
    nics = (
        Interface(name, index, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address(ip, 24),))
        for index, (name, ip) in enumerate(addresses.items(), 2)
    )
    return {NicFacts: NicFacts(tuple(nics))}


def test_different_names_in_one_subnet_are_reported_and_left_to_the_plan() -> None:
    nodes = {"n1": node(eno1="10.1.0.1"), "n2": node(eno1="10.1.0.2"), "n3": node(enp3s0="10.1.0.3")}
    assert judge([interface_names_differ], nodes).findings == [
        Finding("NC302", "interface-names-differ", Severity.WARNING, ("n3",),
                "interface names in 10.1.0.0/24 differ: eno1 on n[1-2], enp3s0 on n3 (2 to 1)", (),
                "ncheck plan nodes.txt", where="here", kind="look", summary="interface names differ"),
    ]  # fmt: skip


def test_of_two_nodes_both_are_named() -> None:
    nodes = {"n1": node(eno1="10.1.0.1"), "n2": node(enp3s0="10.1.0.2")}
    assert [found.nodes for found in judge([interface_names_differ], nodes).findings] == [("n1", "n2")]


def test_it_is_silent_where_one_name_leads_there_on_every_node() -> None:
    nodes = {"n1": node(eth0="10.1.0.1", eth1="10.1.0.11"), "n2": node(eth1="10.1.0.2")}
    assert judge([interface_names_differ], nodes).findings == []


def test_it_is_silent_about_names_in_subnets_that_are_not_shared() -> None:
    nodes = {"n1": node(eth0="10.1.0.1", wan0="192.0.2.9"), "n2": node(eth0="10.1.0.2", lan0="198.51.100.3")}
    assert judge([interface_names_differ], nodes).findings == []
