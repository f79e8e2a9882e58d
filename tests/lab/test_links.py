"""Faults of the network, really made between hosts, and what the hosts tell of their links."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from ncheck.facts.links import LinkCause, ListenFacts

from tests.skips import cannot

from .conftest import why_not
from .linked import Linked, linked
from .promises import eventually
from .wires import BareHost, BareHosts, bare_hosts

SYN = "tcp flags & (syn | ack) == syn"
REFUSED, FILTERED, UNROUTABLE = LinkCause.REFUSED, LinkCause.FILTERED, LinkCause.UNROUTABLE
LOST, LOST_BACK = LinkCause.LARGE_LOST, LinkCause.LARGE_LOST_BACK
FIRST = "10.80.0.0/16"
OTHERS = ("host001", "host002", "host003", "host004", "host005", "host006", "host007")


@pytest.fixture(scope="module")
def sick() -> Iterator[tuple[BareHosts, Linked]]:
    """Seven hosts on two switches, six of them with a fault of their own on the first; each waits its time but once."""
    if why := why_not():
        cannot(why)
    with bare_hosts(7, subnets=2, mtu=9000) as made:
        healthy, resets, drops, rejects, hole, lost, away = made.hosts
        firewall(resets, f"{SYN} reject with tcp reset")
        firewall(drops, f"{SYN} drop")
        firewall(rejects, f"{SYN} reject with icmp type admin-prohibited")
        firewall(hole, "meta length > 1500 drop")
        lost.sh(f"ip route add blackhole {healthy.addresses[0]}/32")
        away.sh(f"ip neigh add {healthy.addresses[0]} lladdr 02:00:00:00:00:99 dev eth0 nud permanent")
        yield made, linked(made)


def firewall(host: BareHost, rule: str) -> None:
    """Add a rule to what comes in by eth0."""
    chain = "add chain inet t i { type filter hook input priority 0; }"
    host.sh(f"nft 'add table inet t; {chain}; add rule inet t i iifname eth0 {rule}'")


def causes(sick: tuple[BareHosts, Linked], node: str) -> dict[str, LinkCause]:
    return {link.target: link.cause for link in sick[1].links(node).broken}


def test_the_other_switch_is_whole_from_every_host(sick: tuple[BareHosts, Linked]) -> None:
    for name in OTHERS:
        (second,) = (reach for reach in sick[1].links(name).reaches if reach.subnet == "10.81.0.0/16")
        assert (second.tried, second.reached) == (6, 6)
        assert {link.subnet for link in sick[1].links(name).broken} == {FIRST}
        assert sick[1].links(name).tried_to == frozenset(OTHERS) - {name}


def test_each_fault_is_told_by_its_cause_from_a_host_without_any(sick: tuple[BareHosts, Linked]) -> None:
    assert causes(sick, "host001") == {
        "host002": REFUSED, "host003": FILTERED, "host004": UNROUTABLE, "host005": LOST, "host006": FILTERED,
        "host007": FILTERED,
    }  # fmt: skip


def test_what_filters_one_way_lets_the_other_way_through(sick: tuple[BareHosts, Linked]) -> None:
    for one_way in ("host002", "host003", "host004"):
        assert set(causes(sick, one_way)) & {"host001", "host006", "host007"} == set()


def test_a_hole_for_large_packets_shows_its_direction(sick: tuple[BareHosts, Linked]) -> None:
    assert causes(sick, "host005") == {
        "host001": LOST_BACK, "host002": REFUSED, "host003": FILTERED, "host004": UNROUTABLE, "host006": LOST_BACK,
        "host007": LOST_BACK,
    }  # fmt: skip
    assert causes(sick, "host007")["host005"] is LOST


def test_a_route_into_nothing_is_told_at_once_and_in_the_kernels_words(sick: tuple[BareHosts, Linked]) -> None:
    (link,) = (link for link in sick[1].links("host006").broken if link.target == "host001")
    assert (link.cause, link.detail, link.source) == (UNROUTABLE, "Invalid argument", "10.80.0.7")


def test_a_firewall_that_says_so_is_told_from_an_address_that_nobody_has(sick: tuple[BareHosts, Linked]) -> None:
    (link,) = (link for link in sick[1].links("host001").broken if link.target == "host004")
    assert link.detail == "No route to host: reported by a router or firewall on the way"
    (link,) = (link for link in sick[1].links("host007").broken if link.target == "host001")
    assert (link.cause, link.detail) == (FILTERED, "no answer within 5 s")


def test_nothing_goes_on_once_the_run_has_ended(sick: tuple[BareHosts, Linked]) -> None:
    for host in sick[0].hosts:
        assert eventually(partial(host.sh, "ss -Hltn"), wanted="", seconds=60) == ""


def test_an_address_that_has_gone_is_unroutable_for_want_of_an_answer_to_arp() -> None:
    if why := why_not():
        cannot(why)
    with bare_hosts(2) as made:
        gone = made.hosts[1]

        def before(act: str) -> None:
            if act == "2 asking its peers":
                gone.sh("ip link set eth0 down")

        found = linked(made, before=before)
    (link,) = found.links("host001").broken
    assert (link.cause, link.detail) == (UNROUTABLE, "No route to host: no answer to ARP")
    assert [link.cause for link in found.links("host002").broken] == [UNROUTABLE]


def test_where_everything_is_filtered_the_run_ends_in_time_and_blames_nobody_it_had_no_time_for() -> None:
    if why := why_not():
        cannot(why)
    with bare_hosts(4) as made:
        for host in made.hosts:
            firewall(host, f"{SYN} drop")
        found = linked(made, deadline=30.0)
    for host in made.hosts:
        assert {link.cause for link in found.links(host.name).broken} <= {FILTERED, LinkCause.UNTRIED}
        assert len(found.links(host.name).broken) == 3


def test_a_port_that_the_job_needs_is_tried_by_all_others() -> None:
    if why := why_not():
        cannot(why)
    with bare_hosts(3) as made:
        firewall(made.hosts[0], "tcp dport 10001 reject with tcp reset")
        found = linked(made, master_port=10001, need_ports=(10002,))
        first = found.facts["host001"][ListenFacts]
    assert isinstance(first, ListenFacts)
    assert [(state.port, state.free, state.assumed) for state in first.needed] == [
        (10001, True, False), (10002, True, False),
    ]  # fmt: skip
    for other in ("host002", "host003"):
        assert [(link.target, link.port, link.cause) for link in found.links(other).broken] == [
            ("host001", 10001, REFUSED)
        ]
    assert found.links("host001").broken == ()


def test_subnets_of_ipv6_are_tried_as_those_of_ipv4_are() -> None:
    if why := why_not():
        cannot(why)
    with bare_hosts(2) as made:
        for host in made.hosts:
            host.sh(f"ip -6 addr add fd00:80::{host.number}/64 dev eth0 nodad")
        found = linked(made)
    assert [(reach.subnet, reach.source, reach.reached) for reach in found.links("host002").reaches] == [
        (FIRST, "10.80.0.3", 1),
        ("fd00:80::/64", "fd00:80::2", 1),
    ]


def test_hosts_without_a_common_subnet_are_tried_between_their_routers() -> None:
    if why := why_not():
        cannot(why)
    with bare_hosts(3) as made:
        for host in made.hosts[1:]:
            host.sh(
                f"ip addr flush dev eth0; ip addr add 10.9{host.number}.0.1/24 dev eth0; ip route add default dev eth0"
            )
        made.hosts[0].sh("ip route add 10.92.0.0/24 dev eth0")
        found = linked(made)
    assert [(reach.subnet, reach.source, reach.reached) for reach in found.links("host002").reaches] == [
        ("", "10.92.0.1", 2)
    ]
    assert [(link.target, link.subnet, link.cause, link.detail) for link in found.links("host001").broken] == [
        ("host003", "", UNROUTABLE, "Network is unreachable")
    ]
