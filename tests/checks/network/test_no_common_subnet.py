"""NC305: nodes without a common subnet; addresses that several nodes have do not count."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.interface_names import Kind
from ncheck.steps.judge import judge
from ncheck_checks.network.no_common_subnet import no_common_subnet


def node(*ips: str, machine: str = "", kind: Kind = Kind.PHYSICAL, routed: bool = False, prefix: int = 24) -> Facts:
    nics = tuple(
        Interface(f"eth{index}", index + 2, kind, up=True, running=True, mtu=1500, addresses=(Address(ip, prefix),),
                  default_route=routed, uplink=kind is Kind.VETH)
        for index, ip in enumerate(ips)
    )  # fmt: skip
    identity = IdentityFacts("n", machine, "net:[1]", 0) if machine else Absent("not asked")
    return {NicFacts: NicFacts(nics), IdentityFacts: identity}


def test_a_node_outside_the_others_subnet_is_named() -> None:
    judgement = judge([no_common_subnet], {"n1": node("10.1.0.1"), "n2": node("10.1.0.2"), "n3": node("10.2.0.3")})
    lines = ("10.1.0.0/24 on n[1-2]", "10.2.0.0/24 on n3")
    assert judgement.findings == [
        Finding("NC305", "no-common-subnet", Severity.ERROR, ("n3",),
                f"no subnet is common to all nodes: {', '.join(lines)}", lines, "ip -br address",
                kind="look", summary="no subnet is common to all nodes"),
    ]  # fmt: skip


def test_containers_on_private_bridges_with_one_address_are_left_to_their_own_check() -> None:
    container = node("172.17.0.2", kind=Kind.VETH, routed=True, prefix=16)
    judgement = judge([no_common_subnet], {"n1": container, "n2": container})
    assert [(one.outcome, one.reason) for one in judgement.verdicts] == [
        (Outcome.SKIPPED, "container-network-isolated reports it")
    ] * 2


def test_of_nodes_in_one_subnet_those_that_show_one_address_are_named() -> None:
    judgement = judge([no_common_subnet], {"n1": node("10.1.0.1"), "n2": node("10.1.0.2"), "n3": node("10.1.0.2")})
    assert [(found.nodes, found.message) for found in judgement.findings] == [
        (("n2", "n3"), "no subnet is common to all nodes: n[2-3] have the same address in 10.1.0.0/24, 10.1.0.2"),
    ]


def test_a_node_that_could_not_be_read_is_unknown() -> None:
    unread: Facts = {NicFacts: Unread("no answer"), IdentityFacts: Absent("not asked")}
    judgement = judge([no_common_subnet], {"n1": node("10.1.0.1"), "n2": node("10.1.0.2"), "n3": unread})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED, Outcome.UNKNOWN]


def test_it_is_silent_where_one_subnet_of_several_is_common() -> None:
    nodes = {"n1": node("192.0.2.1", "10.1.0.1"), "n2": node("198.51.100.2", "10.1.0.2")}
    assert judge([no_common_subnet], nodes).findings == []


def test_it_is_silent_if_every_node_has_a_default_route() -> None:
    nodes = {f"n{i}": node(f"10.128.0.{i}", routed=True, prefix=32) for i in range(3)}
    assert judge([no_common_subnet], nodes).findings == []


def test_it_is_silent_about_an_address_that_each_host_has_besides_its_default_route() -> None:
    def host(number: int) -> Facts:
        routed = node(f"10.128.0.{number}", routed=True, prefix=32)
        private = Address("192.168.100.1", 30)
        tmfifo = Interface("tmfifo_net0", 9, Kind.CLOUD, up=True, running=True, mtu=1500, addresses=(private,))
        interfaces = routed[NicFacts].interfaces  # type: ignore[attr-defined]
        return {**routed, NicFacts: NicFacts((*interfaces, tmfifo))}

    assert judge([no_common_subnet], {f"n{number}": host(number) for number in (1, 2, 3)}).findings == []


def test_it_is_silent_about_pods_in_one_network() -> None:
    nodes = {f"n{i}": node(f"10.244.1.{i + 5}", kind=Kind.VETH, routed=True) for i in range(3)}
    assert judge([no_common_subnet], nodes).findings == []


def test_it_is_silent_about_one_machine_under_two_names() -> None:
    assert (
        judge([no_common_subnet], {"n1": node("10.1.0.1", machine="b"), "n2": node("10.1.0.1", machine="b")}).findings
        == []
    )
