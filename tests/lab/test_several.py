"""Faults that are between nodes: identities, node-to-node ssh, a server under load."""

from __future__ import annotations

from contextlib import AbstractContextManager

from . import faults, layers
from .command import Run, ncheck
from .hosts import Lab
from .promises import HANGS, QUICK, SLACK, examined, others_whole

OF_LOGINS = ("--select", "NC0,NC1")


def _with(lab: Lab, name: str, more: str) -> AbstractContextManager[None]:
    """Add lines to a file of the head for a while."""
    return lab.file_on_head(name, (lab.root / name).read_text() + more)


def test_two_names_of_one_machine_are_named_and_a_host_named_twice_is_one_node_and_a_warning(
    lab: Lab, healthy: Run
) -> None:
    key = lab.host_keys["node01"]
    with (
        _with(lab, "etc/hosts", f"{lab.addresses['node01']} alias\n"),
        _with(lab, "root/.ssh/known_hosts", layers.known_host("alias", "10.77.9.9", key)),
    ):
        run = examined(lab, *OF_LOGINS, nodes=(*lab.names, "alias", "node02"))

    assert (run.failed()["NC101"], run.failed()["NC102"]) == ({"node02"}, {"node01", "alias"}), run.failed()
    assert run.finding("NC101")["severity"] == "warning"
    assert [node["name"] for node in run.report["nodes"]] == [*lab.names, "alias"]
    others_whole(run, healthy, "node01", "alias", "node02", but="NC132")


def test_node_to_node_ssh_that_fails_or_hangs_on_one_edge_is_named_by_that_edge_inside_the_deadline(
    lab: Lab, healthy: Run
) -> None:
    faults.firewall(lab.nodes[2], f"ip saddr {lab.addresses['node02']} tcp dport 22 reject with tcp reset")
    faults.firewall(lab.nodes[3], f"ip saddr {lab.addresses['node03']} tcp dport 22 drop")

    run = examined(lab, *OF_LOGINS, waits=QUICK)

    assert run.failed() == {"NC132": {"node02", "node03"}}, run.failed()
    found = [one for one in run.report["findings"] if one["code"] == "NC132"]
    edges = {one["nodes"][0]: one["message"] + "".join(one["evidence"]) for one in found}
    assert ("node03" in edges["node02"], "node04" in edges["node03"]) == (True, True), edges
    assert run.exit_code == 0  # mpirun on the head does not use them
    others_whole(run, healthy, "node02", "node03")


def test_a_server_under_load_that_drops_every_other_login_is_never_blamed(lab: Lab) -> None:
    node = lab.nodes[1]
    faults.limit_startups(node, "2:30:4")

    with faults.load(lab, node, logins=4):
        run = ncheck(lab, *QUICK, *OF_LOGINS, nodes=lab.names[:2], hard_limit=HANGS)

    assert run.failed() == {}, run.not_passed(node.name)
    assert run.report["seconds"] <= 60 + SLACK


def test_a_server_that_drops_logins_for_a_while_is_tried_again(lab: Lab, healthy: Run) -> None:
    node = lab.nodes[1]
    faults.limit_startups(node, "2:100:2")

    with faults.half_open(lab, node, connections=2, seconds=1):
        run = examined(lab, *OF_LOGINS)

    assert (run.failed(), run.exit_code) == ({}, 0), run.not_passed(node.name)
    others_whole(run, healthy)


def test_a_server_that_always_drops_logins_is_named_as_full_and_not_blamed_and_so_are_hosts_of_one_host_name(
    lab: Lab, healthy: Run
) -> None:
    node = lab.nodes[1]
    faults.limit_startups(node, "2:100:2")
    lab.nodes[3].sh("hostname node03")

    with faults.half_open(lab, node, connections=2, seconds=600):
        run = examined(lab, *OF_LOGINS, waits=QUICK)

    assert run.failed() == {"NC136": {node.name}, "NC103": {"node03", "node04"}}, run.not_passed(node.name)
    assert run.finding("NC136")["severity"] == "warning"
    assert "MaxStartups" in run.finding("NC136")["evidence"][0]
    assert "NC001" in run.unknown(node.name)
    assert run.exit_code == 1
    others_whole(run, healthy, node.name, "node03", "node04")
