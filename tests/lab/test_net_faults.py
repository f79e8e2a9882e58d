"""Faults of the network that leave every node reachable: each is named, on its node, and ends in exit 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from ncheck import Report
from ncheck import run as checked

from tests.skips import cannot

from . import faults
from .command import Run
from .conftest import why_not
from .hosts import Lab
from .node import Node
from .promises import examined
from .wires import BareHosts, bare_hosts


def others(run: Run) -> dict[str, set[str]]:
    """Return the codes that failed but for the mention of a firewall, which is how these faults are made."""
    return {code: nodes for code, nodes in run.failed().items() if code != "NC358"}


def no_loopback(node: Node) -> None:
    node.sh("ip link set lo down")


def limit_connections(node: Node) -> None:
    faults.firewall(node, f"{faults.SYN} limit rate over 2/second drop")


@pytest.mark.parametrize(("percent", "other", "code"), [(5, limit_connections, "NC366"), (20, no_loopback, "NC363")])
def test_a_node_that_loses_packets_and_one_that_limits_connections_or_has_no_loopback_are_named(
    lab: Lab, percent: int, other: Callable[[Node], None], code: str
) -> None:
    losing = f"tcp dport 32768-60999 tcp sport 32768-60999 numgen random mod 100 < {percent} drop"
    faults.firewall(lab.nodes[2], losing)
    other(lab.nodes[1])

    run = examined(lab, "--select", "NC3")

    assert others(run) == {"NC365": {"node03"}, code: {"node02"}}, (run.not_passed("node02"), run.not_passed("node03"))
    assert run.finding("NC365")["message"].startswith("packets to node03 are lost on 10.77.0.0/24: ")
    assert run.exit_code == 1


@pytest.fixture
def rails() -> Iterator[BareHosts]:
    """Four hosts on three switches."""
    if why := why_not():
        cannot(why)
    with bare_hosts(4, subnets=3) as made:
        yield made


def judged(made: BareHosts) -> Report:
    names = [host.name for host in made.hosts]
    return checked(names, rsh=made.rsh, probe="none", connect_timeout=60, deadline=240, select=["NC3"])


def network_findings(report: Report) -> dict[str, tuple[str, ...]]:
    """Return the findings about networks, but for the one that these hosts have no names for each other."""
    return {one.code: one.nodes for one in report.findings if one.code != "NC360"}


def test_hosts_on_three_networks_are_healthy(rails: BareHosts) -> None:
    assert network_findings(judged(rails)) == {}


def test_two_swapped_data_cables_are_named(rails: BareHosts) -> None:
    host = rails.hosts[1]
    host.sh("ip link set eth1 down; ip link set eth2 down; ip address flush eth1; ip address flush eth2")
    host.sh("ip link set eth1 name x; ip link set eth2 name eth1; ip link set x name eth2")
    for number in (1, 2):
        host.sh(f"ip address add {host.addresses[number]}/16 dev eth{number}; ip link set eth{number} up")

    assert network_findings(judged(rails)) == {"NC364": ("host002",)}


def test_a_missing_card_and_a_small_netmask_are_named_where_all_networks_are_as_fast(rails: BareHosts) -> None:
    _, lost, masked, _ = rails.hosts
    lost.sh("ip link delete eth2")
    masked.sh(f"ip address flush eth1; ip address add {masked.addresses[1]}/30 dev eth1")

    assert network_findings(judged(rails)) == {"NC326": ("host002",), "NC327": ("host003",)}
