"""Broken links between real hosts: the finding names the right node and direction, and nothing else turns red."""

from __future__ import annotations

from . import faults
from .command import Run
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


def test_a_filter_against_one_node_is_one_way_and_a_route_into_nothing_names_both_ends(lab: Lab) -> None:
    one, far, near, other = lab.nodes
    faults.firewall(near, f"ip saddr {far.address} tcp dport {MESH} {faults.SYN} drop")
    faults.lose_the_way(one, other.address, MESH)
    before = logins_from_the_head(lab)

    run = examined(lab, "--select", "NC1,NC3")

    by_ncheck = [count + 1 for count in before]
    assert logins_from_the_head(lab) == [by_ncheck[0] + 1, *by_ncheck[1:]]  # and one by the ssh program: NC134
    assert red(run) == {"NC312": {one.name, other.name}, "NC313": {near.name, far.name}}, run.not_passed(near.name)
    assert run.finding("NC313")["message"].startswith(
        "node03 reaches node02 on 10.77.0.0/24, but node02 does not reach node03: no answer; "
    )
    assert "node01 and node04 cannot reach each other on 10.77.0.0/24" in run.finding("NC312")["message"]


def test_a_port_that_is_taken_is_named_with_its_owner_and_one_that_is_closed_with_who_needs_it(lab: Lab) -> None:
    first, second, third = lab.nodes[:3]
    faults.listen(first, 10005)
    faults.listen(second, 10005)  # the ranks do not meet there
    faults.listen(third, 10007)
    faults.firewall(first, f"tcp dport 10006 {faults.SYN} reject with tcp reset")

    run = examined(lab, "--master-port", "10005", "--need-port", "10006,10007", "--select", "NC3")

    assert red(run) == {"NC316": {first.name, third.name}, "NC318": {"node02", "node03", "node04"}}, run.not_passed(
        first.name
    )
    taken = {tuple(one["nodes"]): one["message"] for one in run.report["findings"] if one["code"] == "NC316"}
    assert taken[(first.name,)].startswith("port 10005 is taken by python3 (pid ")
    assert taken[(third.name,)].startswith("port 10007 is taken by python3 (pid ")
    assert run.finding("NC318")["message"].startswith("port 10006 of node01 cannot be reached on 10.77.0.0/24 from ")


def test_what_breaks_in_a_network_that_is_faster_than_the_one_that_carries_is_an_error(
    wide_lab: Lab, wide_healthy: Run
) -> None:
    node = wide_lab.nodes[1]
    faults.firewall(node, f"iifname {node.nics[0]} tcp dport {MESH} {faults.SYN} drop")

    run = examined(wide_lab, "--select", "NC3")

    more = {code: nodes for code, nodes in red(run).items() if code not in red(wide_healthy)}
    assert more == {"NC329": {node.name}}, run.not_passed(node.name)
    finding = run.finding("NC329")
    assert finding["severity"] == "error"
    assert finding["message"] == (
        "node02 cannot be reached on 10.78.0.0/24 by any node: no answer; "
        "the plan uses 10.77.0.0/24 (1 Gb/s), 10 times slower"
    )


def test_what_breaks_beside_a_network_that_carries_and_is_as_fast_is_a_warning(wide_lab: Lab) -> None:
    node = wide_lab.nodes[1]
    wide_lab.head("ethtool", "-s", "wire0", "speed", "10000")
    try:
        before = examined(wide_lab, "--select", "NC3")
        faults.firewall(node, f"iifname {node.nics[0]} tcp dport {MESH} {faults.SYN} drop")
        run = examined(wide_lab, "--select", "NC3")
    finally:
        wide_lab.head("ethtool", "-s", "wire0", "speed", "1000")

    more = {code: nodes for code, nodes in red(run).items() if code not in red(before)}
    assert more == {"NC319": {node.name}}, run.not_passed(node.name)
    assert run.finding("NC319")["severity"] == "warning"
