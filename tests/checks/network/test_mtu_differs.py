"""NC350: not all interfaces of a subnet have one MTU."""

from __future__ import annotations

from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.mtu_differs import mtu_differs


def nic(name: str, ip: str, mtu: int = 9000) -> Interface:
    addresses = (Address(ip, 24),)
    return Interface(
        name, int(ip.split(".")[2]) + 2, Kind.PHYSICAL, up=True, running=True, mtu=mtu, addresses=addresses
    )


def nodes(*held: tuple[Interface, ...]) -> dict[str, Facts]:
    return {f"n{number}": {NicFacts: NicFacts(nics)} for number, nics in enumerate(held, 1)}


def test_the_odd_node_is_named_with_the_line_that_gives_it_the_mtu_of_the_others() -> None:
    odd = (nic("eth 1", "10.1.0.3", 1500),)
    cluster = nodes((nic("eth0", "10.1.0.1"),), (nic("eth0", "10.1.0.2"),), odd)
    assert judge([mtu_differs], cluster).findings == [
        Finding("NC350", "mtu-differs", Severity.WARNING, ("n3",),
                "the MTU of interfaces in 10.1.0.0/24 differs: 9000 on n[1-2], 1500 on n3 (2 to 1)", (),
                "sudo ip link set dev 'eth 1' mtu 9000"),
    ]  # fmt: skip


def test_a_tie_names_both_sides() -> None:
    cluster = nodes((nic("eth0", "10.1.0.1"),), (nic("eth0", "10.1.0.2", 1500),))
    assert [finding.nodes for finding in judge([mtu_differs], cluster).findings] == [("n1", "n2")]


def test_one_of_two_cards_in_a_subnet_is_found_too() -> None:
    pair = (nic("eth0", "10.1.0.2"), nic("eth1", "10.1.0.12", 1500))
    alone = ((nic("eth0", f"10.1.0.{last}"),) for last in (1, 3))
    (finding,) = judge([mtu_differs], nodes(pair, *alone)).findings
    assert (finding.nodes, finding.fix) == (("n1",), "sudo ip link set dev eth1 mtu 9000")


def test_a_subnet_that_only_some_nodes_are_in_is_judged_too() -> None:
    one, two = (
        (nic("eth0", "10.1.0.1"), nic("eth1", "10.2.0.1")),
        (nic("eth0", "10.1.0.2"), nic("eth1", "10.2.0.2", 1500)),
    )
    cluster = nodes(one, two, (nic("eth0", "10.1.0.3"),))
    assert [finding.nodes for finding in judge([mtu_differs], cluster).findings] == [("n1", "n2")]


def test_it_is_silent_where_each_subnet_has_an_mtu_of_its_own() -> None:
    one, two = ((nic("eth0", f"10.1.0.{n}", 1500), nic("eth1", f"10.2.0.{n}", 9000)) for n in (1, 2))
    assert {verdict.outcome for verdict in judge([mtu_differs], nodes(one, two)).verdicts} == {Outcome.PASSED}


def test_it_is_silent_where_one_address_on_two_nodes_is_no_network() -> None:
    one, two = (nic("br0", "172.17.0.1", 1500),), (nic("br0", "172.17.0.1", 1450),)
    assert judge([mtu_differs], nodes(one, two)).findings == []


def test_interfaces_that_could_not_be_read_are_unknown() -> None:
    cluster: dict[str, Facts] = {**nodes((nic("eth0", "10.1.0.1"),)), "n2": {NicFacts: Unread("no answer")}}
    assert [verdict.outcome for verdict in judge([mtu_differs], cluster).verdicts] == [Outcome.UNKNOWN] * 2
