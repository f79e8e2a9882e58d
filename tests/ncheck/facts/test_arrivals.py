"""About which packets each node's kernel is asked."""

from __future__ import annotations

from collections.abc import Mapping

from ncheck.facts.arrivals import ARRIVALS, ask_arrivals
from ncheck.facts.login import LoginFacts
from ncheck.facts.net_settings import InterfaceSettings, NetSettingsFacts
from ncheck.facts.nics import Address, Interface, NicFacts
from ncheck.model.cluster import Cluster, Facts
from ncheck.model.evidence import Answer, Login
from ncheck.model.node import Node
from ncheck.model.phase import NotAsked
from ncheck.parse.interface_names import Kind
from ncheck.settings import Settings

LOGIN = LoginFacts(Login(reached=True))


def node(*ips: str, rp_filter: int = 1, loose: str = "") -> Facts:
    nics = tuple(
        Interface(f"eth{n}", n + 2, Kind.PHYSICAL, up=True, running=True, mtu=1500, addresses=(Address(ip, 24),))
        for n, ip in enumerate(ips)
    )
    conf = {"all": InterfaceSettings(rp_filter=rp_filter), loose: InterfaceSettings(rp_filter=2)}
    return {LoginFacts: LOGIN, NicFacts: NicFacts(nics), NetSettingsFacts: NetSettingsFacts(conf, (32768, 60999))}


def cluster(nodes: Mapping[str, Facts]) -> Cluster:
    return Cluster(tuple(map(Node, nodes)), nodes)


def asked(nodes: Mapping[str, Facts], name: str) -> list[tuple[object, ...]]:
    (question,) = ask_arrivals(cluster(nodes), Settings(), 20.0)[name]
    assert isinstance(question, Answer)
    assert isinstance(question.arguments, dict)
    packets = question.arguments["arrivals"]
    assert isinstance(packets, list)
    return [tuple(packet.values()) for packet in packets if isinstance(packet, dict)]


def test_each_interface_of_one_subnet_is_asked_about_one_sender_there() -> None:
    nodes = {"a": node("10.1.0.1", "10.1.0.11"), "b": node("10.1.0.2", "10.1.0.12"), "c": node("10.1.0.3")}
    assert asked(nodes, "a") == [("eth0", "10.1.0.1", "10.1.0.2"), ("eth1", "10.1.0.11", "10.1.0.2")]


def test_an_interface_whose_filter_is_loose_is_left_out() -> None:
    nodes = {"a": node("10.1.0.1", "10.1.0.11", loose="eth1"), "b": node("10.1.0.2")}
    assert asked(nodes, "a") == [("eth0", "10.1.0.1", "10.1.0.2")]


def test_nodes_that_only_routers_join_are_senders_by_the_interface_of_the_same_name() -> None:
    nodes = {"a": node("10.1.1.1", "10.2.1.1"), "b": node("10.1.2.1", "10.2.2.1")}
    assert asked(nodes, "a") == [("eth0", "10.1.1.1", "10.1.2.1"), ("eth1", "10.2.1.1", "10.2.2.1")]


def test_nodes_that_share_a_subnet_do_not_send_to_one_another_from_others() -> None:
    nodes = {"a": node("10.1.0.1", "192.168.7.1"), "b": node("10.1.0.2", "192.168.8.1")}
    assert asked(nodes, "a") == [("eth0", "10.1.0.1", "10.1.0.2")]


def test_a_node_with_one_interface_or_no_strict_filter_is_not_asked() -> None:
    nodes = {"a": node("10.1.0.1"), "b": node("10.1.0.2", "10.1.0.12", rp_filter=0)}
    why = "no packet of another node can arrive on a wrong interface: one interface, or no strict rp_filter"
    assert ask_arrivals(cluster(nodes), Settings(), 20.0) == dict.fromkeys("ab", (NotAsked(ARRIVALS, why),))


def test_nothing_is_said_of_a_node_whose_interfaces_are_not_known() -> None:
    nodes: dict[str, Facts] = {"a": node("10.1.0.1"), "b": {LoginFacts: LOGIN}}
    assert set(ask_arrivals(cluster(nodes), Settings(), 20.0)) == {"a"}
