"""Faults of the network that leave every node reachable: each is named, on its node, and ends in exit 1."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ncheck import Report
from ncheck import run as checked

from tests.skips import cannot

from . import faults
from .command import Run
from .conftest import why_not
from .node import Node
from .ward import Row, Ward, hold, hold_whole, on, sh, ward
from .wires import BareHosts, bare_hosts

MESH = "tcp dport 32768-60999 tcp sport 32768-60999"


def lose(node: Node, percent: int) -> None:
    faults.firewall(node, f"{MESH} numgen random mod 100 < {percent} drop")


ROWS = (
    Row("5 % of the packets lost", "NC365", on(lose, 5), "packets to node02 are lost on 10.77.0.0/24: "),
    Row("20 % of the packets lost", "NC365", on(lose, 20), "packets to node03 are lost on 10.77.0.0/24: "),
    Row("two new connections a second", "NC366",
        on(faults.firewall, f"{faults.SYN} limit rate over 2/second drop")),
    Row("no loopback", "NC363", sh("ip link set lo down")),
)  # fmt: skip


@pytest.fixture(scope="module")
def lossy() -> Iterator[Ward]:
    with ward(ROWS) as made:
        yield made


@pytest.fixture(scope="module")
def run(lossy: Ward) -> Run:
    return lossy.examined("--select", "NC3")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_a_node_that_loses_packets_and_one_that_limits_connections_or_has_no_loopback_are_named(
    lossy: Ward, run: Run, row: Row
) -> None:
    hold(lossy, run, row)


def test_the_others_are_whole_and_the_run_ends_in_exit_1(lossy: Ward, run: Run, healthy: Run) -> None:
    hold_whole(lossy, run, healthy)
    assert run.failed() == lossy.failing
    assert run.exit_code == 1


@pytest.fixture
def rails() -> Iterator[BareHosts]:
    """Four hosts on three switches."""
    if why := why_not():
        cannot(why)
    with bare_hosts(4, subnets=3) as made:
        yield made


def judged(made: BareHosts) -> Report:
    hosts = [host.name for host in made.hosts]
    return checked(hosts, rsh=made.rsh, probe="none", select=("NC3",), connect_timeout=60, deadline=240)


def network_findings(report: Report) -> dict[str, tuple[str, ...]]:
    """Return the findings, but for the one that these hosts have no names for each other."""
    return {one.code: one.nodes for one in report.findings if one.code != "NC360"}


def test_a_missing_card_and_a_small_netmask_are_named_where_all_networks_are_as_fast_and_nothing_before(
    rails: BareHosts,
) -> None:
    assert network_findings(judged(rails)) == {}
    _, lost, masked, _ = rails.hosts
    lost.sh("ip link delete eth2")
    masked.sh(f"ip address flush eth1; ip address add {masked.addresses[1]}/30 dev eth1")

    assert network_findings(judged(rails)) == {"NC326": ("host002",), "NC327": ("host003",)}


def test_two_swapped_data_cables_are_named(rails: BareHosts) -> None:
    host = rails.hosts[1]
    host.sh("ip link set eth1 down; ip link set eth2 down; ip address flush eth1; ip address flush eth2")
    host.sh("ip link set eth1 name x; ip link set eth2 name eth1; ip link set x name eth2")
    for number in (1, 2):
        host.sh(f"ip address add {host.addresses[number]}/16 dev eth{number}; ip link set eth{number} up")

    assert network_findings(judged(rails)) == {"NC364": ("host002",)}
