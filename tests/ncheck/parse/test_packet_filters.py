"""Rules of nft and iptables as the programs print them, and what becomes of a packet under them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ncheck.parse.packet_filters import Chain, Match, Rule, iptables_chains, nft_chains
from ncheck_checks.network.firewall_active import Packet, holds, stopped

# `nft -j list ruleset`, one object a line: what firewalld writes, with a trusted network and a trusted interface.
FIREWALLD = Path(__file__).with_name("firewalld.nft.json").read_text()

# `iptables -S` on a host where ufw filters.
UFW = """\
-P INPUT DROP
-P FORWARD DROP
-P OUTPUT ACCEPT
-N ufw-before-input
-N ufw-not-local
-N ufw-user-input
-A INPUT -j ufw-before-input
-A INPUT -p tcp -j REJECT --reject-with tcp-reset
-A ufw-before-input -i lo -j ACCEPT
-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-input -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A ufw-before-input -j ufw-not-local
-A ufw-before-input -j ufw-user-input
-A ufw-not-local -m addrtype --dst-type LOCAL -j RETURN
-A ufw-not-local -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "
-A ufw-not-local -j DROP
-A ufw-user-input -p tcp -m tcp --dport 22 -m comment --comment "dapp_OpenSSH -j DROP" -j ACCEPT
-A ufw-user-input -p tcp -m multiport --dports 80,443,30000:30100 -j ACCEPT
-A ufw-user-input -s 10.7.0.0/16 ! -i eth9 -j ACCEPT
-A ufw-user-input -p udp -m udp --dport 53 -j ACCEPT
"""

# What Docker leaves in INPUT: nothing.
DOCKER = """\
-P INPUT ACCEPT
-P FORWARD DROP
-P OUTPUT ACCEPT
-N DOCKER
-N DOCKER-USER
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A DOCKER-USER -j RETURN
"""


def packet(source: str = "10.1.0.2", port: int = 40000, interface: str = "eth0") -> Packet:
    return Packet(interface, source, "10.1.0.1", port)


def stops(chains: tuple[Chain, ...], *packets: Packet) -> list[bool]:
    return [stopped(chains, one) is not None for one in packets]


def test_firewalld_lets_in_ssh_the_trusted_network_and_the_trusted_interface_and_no_more() -> None:
    chains = nft_chains(FIREWALLD)
    let_in = (packet(port=22), packet("10.9.3.4"), packet("10.8.0.5"), packet(interface="eth1"), packet(port=80))
    assert stops(chains, *let_in) == [False] * 5
    assert stops(chains, packet(), packet(port=9050), packet("10.8.0.10"), packet(interface="ib0")) == [True] * 4
    chain = stopped(chains, packet())
    assert chain is not None
    assert (chain.table, chain.name, chain.policy) == ("inet firewalld", "filter_INPUT", "accept")


def test_ufw_lets_in_what_it_was_told_and_no_more() -> None:
    chains = iptables_chains(UFW)
    let_in = (packet(port=22), packet(port=443), packet(port=30050), packet("10.7.0.9"))
    assert stops(chains, *let_in) == [False] * 4
    assert stops(chains, packet(), packet(port=53), packet("10.7.0.9", interface="eth9")) == [True] * 3


def test_dockers_rules_and_none_at_all_stop_nothing() -> None:
    assert stops(iptables_chains(DOCKER), packet()) == stops(iptables_chains(""), packet()) == [False]
    assert stops(nft_chains('{"nftables": [{"metainfo": {"json_schema_version": 1}}]}'), packet()) == [False]


def ruleset(*rules: list[dict[str, object]], policy: str = "accept", **chain: object) -> tuple[Chain, ...]:
    place = {"family": "inet", "table": "t"}
    hook = {"type": "filter", "hook": "input", "prio": 0, "policy": policy, **chain}
    objects: list[object] = [{"chain": {**place, "name": "in", "handle": 1, **hook}}]
    objects += [{"rule": {**place, "chain": "in", "handle": n, "expr": expr}} for n, expr in enumerate(rules)]
    return nft_chains(json.dumps({"nftables": objects}))


def port_is(*ports: object) -> dict[str, object]:
    left = {"payload": {"protocol": "tcp", "field": "dport"}}
    return {"match": {"op": "==", "left": left, "right": {"set": list(ports)}}}


DROP: dict[str, object] = {"drop": None}
ACCEPT: dict[str, object] = {"accept": None}


def test_a_rule_that_drops_one_port_stops_that_port_alone() -> None:
    chains = ruleset([port_is(29500, {"range": [40000, 40010]}), DROP])
    assert stops(chains, packet(), packet(port=29500), packet(port=1)) == [True, True, False]


@pytest.mark.parametrize(
    "unknown",
    [
        {"match": {"op": "==", "left": {"fib": {"result": "oif", "flags": ["saddr"]}}, "right": False}},
        {"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": 16384}},
        {"match": {"op": "==", "left": {"concat": [{"meta": {"key": "iifname"}}]}, "right": "@pairs"}},
        {"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": "@not-listed"}},
        {"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": "gateway"}},
        {"limit": {"rate": 3, "per": "second"}},
        {"xt": None},
    ],
)
def test_a_condition_that_is_not_understood_neither_stops_nor_surely_accepts(unknown: dict[str, object]) -> None:
    assert stops(ruleset([unknown, DROP]), packet()) == [False]
    assert stops(ruleset([unknown, ACCEPT], policy="drop"), packet()) == [False]


def test_a_queue_to_a_program_may_accept() -> None:
    assert stops(ruleset([{"queue": {}}], policy="drop"), packet()) == [False]


def test_other_hooks_and_families_are_not_looked_at() -> None:
    assert stops(ruleset([DROP], hook="forward"), packet()) == [False]
    assert stops(ruleset([DROP], type="nat"), packet()) == [False]
    assert stops(ruleset([DROP], family="ip6"), packet()) == [False]


def test_every_chain_at_the_hook_must_let_a_packet_pass() -> None:
    one = Chain("inet a", "in", (Rule((), "accept"),), "accept")
    other = Chain("inet b", "in", (), "drop")
    assert stopped((one, other), packet()) == other


def test_jumps_in_a_circle_end_and_stop_nothing() -> None:
    there, back = Chain("t", "a", (Rule((), "jump", "b"),), "drop"), Chain("t", "b", (Rule((), "jump", "a"),))
    assert stopped((there, back), packet()) is None


def test_a_negated_condition_holds_for_all_else() -> None:
    assert holds(Match("source", ("10.1.0.0/24",), negated=True), packet()) is False
    assert holds(Match("status", ("dnat",), negated=True), packet()) is True
    assert holds(Match("other", ("53",), negated=True), packet()) is False


@pytest.mark.parametrize("text", ["-X INPUT", "Chain INPUT (policy ACCEPT)", '-A INPUT -m comment --comment "open'])
def test_what_is_no_rule_of_iptables_is_no_ruleset(text: str) -> None:
    with pytest.raises(ValueError, match=r"no line|quotation"):
        iptables_chains(text)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nftables": [{"rule": {}}]}', '{"nftables": 7}'])
def test_what_is_no_ruleset_of_nft_is_none(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        nft_chains(text)
