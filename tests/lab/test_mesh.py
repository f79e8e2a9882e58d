"""Broken links between real hosts: the finding names the right node and direction, and nothing else turns red."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.skips import cannot

from . import faults, hosts
from .command import Run
from .conftest import why_not
from .hosts import Lab
from .promises import examined

FIREWALL = "NC358"  # the rules of the firewall are a finding too, and rightly
MESH = "32768-60999"  # the ports that the kernel picks: the mesh's, and no sshd's


def red(run: Run) -> dict[str, set[str]]:
    """Map each code that failed to the nodes where it did, but for the mention of a firewall."""
    return {code: nodes for code, nodes in run.failed().items() if code != FIREWALL}


HEAD = "10.77.0.254"


def logins_from_the_head(lab: Lab) -> list[int]:
    """Count what each node's sshd wrote down of logins that came from the head."""
    logs = (node.path("/run/sshd.log").read_text() for node in lab.nodes)
    return [sum(line.startswith("Accepted ") and f" from {HEAD} " in line for line in log.splitlines()) for log in logs]


@pytest.fixture(scope="module")
def broken() -> Iterator[Run]:
    """Break links between two and two nodes and take or close ports; hold the logins of the run to one a node."""
    if why := why_not():
        cannot(why)
    with hosts.lab(5) as lab:
        one, far, near, other, closed = lab.nodes
        faults.firewall(near, f"ip saddr {far.address} tcp dport {MESH} {faults.SYN} drop")
        faults.lose_the_way(one, other.address, MESH)
        faults.listen(one, 10005)
        faults.listen(far, 10005)  # the ranks do not meet there
        faults.listen(near, 10007)
        faults.firewall(closed, f"tcp dport 10006 {faults.SYN} reject with tcp reset")

        run = examined(lab, "--master-port", "10005", "--need-port", "10006,10007", "--select", "NC1,NC3")

        assert logins_from_the_head(lab) == [2, 1, 1, 1, 1]  # to the first one more by the ssh program: NC134
        yield run


def test_a_filter_against_one_node_is_one_way_and_a_route_into_nothing_names_both_ends(broken: Run) -> None:
    assert (red(broken)["NC312"], red(broken)["NC313"]) == ({"node01", "node04"}, {"node02", "node03"})
    assert broken.finding("NC313")["message"].startswith(
        "node03 reaches node02 on 10.77.0.0/24, but node02 does not reach node03: no answer; "
    )
    assert "node01 and node04 cannot reach each other on 10.77.0.0/24" in broken.finding("NC312")["message"]


def test_a_port_that_is_taken_is_named_with_its_owner_and_one_that_is_closed_with_who_needs_it(broken: Run) -> None:
    others = {"node01", "node02", "node03", "node04"}
    assert (red(broken)["NC316"], red(broken)["NC318"]) == ({"node01", "node03"}, others)
    taken = {tuple(one["nodes"]): one["message"] for one in broken.report["findings"] if one["code"] == "NC316"}
    assert taken["node01",].startswith("port 10005 is taken by python3 (pid ")
    assert taken["node03",].startswith("port 10007 is taken by python3 (pid ")
    assert broken.finding("NC318")["message"].startswith("port 10006 of node05 cannot be reached on 10.77.0.0/24 from ")


def test_nothing_else_is_named(broken: Run) -> None:
    assert red(broken).keys() == {"NC312", "NC313", "NC316", "NC318"}, broken.failed()


def test_a_node_that_loses_half_of_the_flows_is_one_error_and_not_links_by_chance(lab: Lab) -> None:
    """One leg of a bond is dead: which connections get through is chance, and the same for all packets of each."""
    node = lab.nodes[1]
    half = "jhash ip saddr . ip daddr . tcp sport . tcp dport mod 2 seed 0x5eed == 0"
    faults.firewall(node, f"tcp sport {MESH} tcp dport {MESH} {half} drop")

    run = examined(lab, "--select", "NC3")

    assert red(run) == {"NC366": {node.name}}, run.not_passed(node.name)
    finding = run.finding("NC366")
    assert (
        "connections from and to node02 on 10.77.0.0/24 get no answer, the others are quick: a part of the"
        in (finding["message"])
    )
    assert (finding["where"], finding["fix"]) == ("node02", "ip -s -s link")


def test_what_breaks_in_a_faster_network_is_an_error_and_beside_one_that_is_as_fast_a_warning(
    wide_lab: Lab, wide_healthy: Run
) -> None:
    node = wide_lab.nodes[1]
    faults.firewall(node, f"iifname {node.nics[0]} tcp dport {MESH} {faults.SYN} drop")

    faster = examined(wide_lab, "--select", "NC3")
    wide_lab.head("ethtool", "-s", "wire0", "speed", "10000")
    try:
        as_fast = examined(wide_lab, "--select", "NC3")
    finally:
        wide_lab.head("ethtool", "-s", "wire0", "speed", "1000")

    assert new(faster, wide_healthy) == {"NC329": {node.name}}, faster.not_passed(node.name)
    finding = faster.finding("NC329")
    assert finding["severity"] == "error"
    assert finding["message"] == (
        "node02 cannot be reached on 10.78.0.0/24 by any node: no answer; "
        "the plan uses 10.77.0.0/24 (1 Gb/s), 10 times slower"
    )
    assert new(as_fast, wide_healthy) == {"NC319": {node.name}}, as_fast.not_passed(node.name)
    assert as_fast.finding("NC319")["severity"] == "warning"


def new(run: Run, before: Run) -> dict[str, set[str]]:
    return {code: nodes for code, nodes in red(run).items() if code not in red(before)}
