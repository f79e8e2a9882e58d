"""Faults of the faster of two networks: the job could run on the other one, so each is one error, on its node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from . import faults
from .command import Run
from .fixes import type_fixes, typed_in
from .hosts import Lab
from .node import Node
from .promises import examined
from .ward import Row, Ward, findings, ward
from .wiring import SEVERAL_NICS, cable_of, fast_address


def new(run: Run, before: Run) -> dict[str, set[str]]:
    """Return the codes that failed now and not before, with their nodes."""
    return {code: nodes for code, nodes in run.failed().items() if code not in before.failed()}


def small_netmask(_lab: Lab, node: Node) -> None:
    address = fast_address(node)
    node.sh(f"ip address add {address}/30 dev {node.nics[0]}; ip address del {address}/24 dev {node.nics[0]}")


def another_nodes_address(lab: Lab, node: Node) -> None:
    other = fast_address(lab.nodes[2])
    node.sh(f"ip address flush dev {node.nics[0]}; ip address add {other}/24 dev {node.nics[0]}")


def no_card(_lab: Lab, node: Node) -> None:
    node.sh(f"ip link delete {node.nics[0]}")


def no_cable(lab: Lab, node: Node) -> None:
    lab.head("ip", "link", "set", cable_of(node), "down")
    node.touched = True


def no_address(_lab: Lab, node: Node) -> None:
    node.sh(f"ip address flush dev {node.nics[0]}")


ROWS = (
    Row("a small netmask in the fast network", "NC327", small_netmask),
    Row("no card for the fast network", "NC329", no_card),
    Row("no cable of the fast network", "NC329", no_cable),
    Row("no address in the fast network", "NC329", no_address),
)


@pytest.fixture(scope="module")
def sick() -> Iterator[Ward]:
    with ward(ROWS, SEVERAL_NICS, whole=5) as made:
        yield made


@pytest.fixture(scope="module")
def run(sick: Ward) -> Run:
    return sick.examined("--select", "NC3")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_a_node_without_the_fast_network_is_one_error(sick: Ward, run: Run, wide_healthy: Run, row: Row) -> None:
    node = sick.name(row)
    assert {code for code, nodes in new(run, wide_healthy).items() if node in nodes} == row.failing
    assert [f["severity"] for f in findings(run, node) if f["code"] in row.failing] == ["error"]


def test_the_fast_network_is_whole_elsewhere(sick: Ward, run: Run, wide_healthy: Run) -> None:
    assert new(run, wide_healthy) == sick.failing
    assert run.exit_code == 1


def test_a_netmask_is_mended_by_its_fix(sick: Ward, run: Run, wide_healthy: Run) -> None:
    type_fixes(sick.lab, run, typed_in("test_fast_network.py"))

    again = sick.examined("--select", ",".join(run.failed()))

    assert new(again, wide_healthy) == {"NC329": sick.failing["NC329"]}


@pytest.mark.parametrize(
    ("fault", "code", "named"),
    [
        (another_nodes_address, "NC328", {"node02", "node03"}),
        (faults.unplug_fast, "NC329", {"node02"}),
        (faults.shrink_switch_port, "NC329", {"node02"}),
    ],
)
def test_what_disturbs_others_in_the_fast_network_is_one_error(
    wide_lab: Lab, wide_healthy: Run, fault: Callable[[Lab, Node], None], code: str, named: set[str]
) -> None:
    fault(wide_lab, wide_lab.nodes[1])

    run = examined(wide_lab, "--select", "NC3")

    assert new(run, wide_healthy) == {code: named}, run.not_passed("node02")
    assert run.finding(code)["severity"] == "error"
    assert run.exit_code == 1


def test_a_card_that_is_gone_is_an_error_even_where_another_network_is_as_fast(
    wide_lab: Lab, wide_healthy: Run
) -> None:
    no_card(wide_lab, wide_lab.nodes[1])
    wide_lab.head("ethtool", "-s", "wire0", "speed", "10000")
    try:
        run = examined(wide_lab, "--select", "NC3")
    finally:
        wide_lab.head("ethtool", "-s", "wire0", "speed", "1000")

    assert new(run, wide_healthy) == {"NC326": {"node02"}}, run.not_passed("node02")
    assert run.finding("NC326")["message"] == "node02 has fewer network cards in use than the others: 1 (eth0)"
    assert run.finding("NC326")["severity"] == "error"
