"""A node that cannot be logged in to: named, with its own cause, and all others as if nothing were wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import faults
from .command import Run, begin, listing, ncheck
from .hosts import Lab
from .promises import HANGS, PATIENT, QUICK, examined, others_whole
from .ward import BETWEEN_NODES, Row, Ward, bashrc, findings, hold, hold_whole, on, selected, ward

ROWS = (
    Row("packets dropped", "NC001 NC112", on(faults.lose_everything)),
    Row("sshd frozen", "NC001 NC115", on(faults.freeze_sshd)),
    Row("packets over 600 bytes lost", "NC001 NC116", on(faults.lose_large_packets)),
    Row("start-up file that hangs", "NC001 NC124", bashrc("sleep 20")),
    Row("sshd stopped", "NC001 NC111", on(faults.stop_sshd)),
    Row("another server on the port", "NC001 NC114", on(faults.serve_http)),
    Row("host key changed", "NC001 NC118", on(faults.change_host_key)),
    Row("keys refused", "NC001 NC120", on(faults.refuse_keys)),
    Row("nologin", "NC001 NC124", on(faults.login_shell, "/usr/sbin/nologin")),
    Row("1 GB banner", "NC001 NC128", bashrc("head -c 1G /dev/zero | tr '\\0' x")),
    Row("start-up file that exits", "NC001 NC124", bashrc("exit 3")),
    Row("start-up file that replaces the shell", "NC001 NC129", bashrc("exec sh")),
)
OF_LOGINS = ("--select", "NC0,NC11,NC12")


@pytest.fixture(scope="module")
def closed() -> Iterator[Ward]:
    with ward(ROWS) as made:
        yield made


@pytest.fixture(scope="module", params=["auto", "openssh"])
def run(request: pytest.FixtureRequest, closed: Ward, healthy: Run) -> Run:
    # Where packets are lost the node never learns that we left: sshd waits for its own LoginGraceTime.
    asked = selected(healthy, *BETWEEN_NODES)
    return closed.examined("--transport", request.param, *asked, waits=QUICK)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_a_node_that_is_not_reached_is_named_with_its_cause(closed: Ward, run: Run, row: Row) -> None:
    """Only NC001 and the cause fail; what needs them is unknown there, and nothing passed."""
    node = hold(closed, run, row)

    assert {code for (code, _), outcome in run.verdicts(node).items() if outcome == "passed" and code >= "NC2"} == set()
    assert all(finding["fix"] for finding in findings(run, node) if finding["code"] != "NC001")


def test_the_others_are_whole_and_the_run_ends_in_exit_1(closed: Ward, run: Run, healthy: Run) -> None:
    hold_whole(closed, run, healthy)
    assert run.failed() == closed.failing
    assert run.exit_code == 1
    assert {n["name"] for n in run.report["nodes"] if n["reached"]} == set(closed.whole)


def test_a_server_on_another_port_is_named_and_the_list_with_that_port_is_whole(lab: Lab) -> None:
    node = lab.nodes[1]
    node.sh("sed -i '/^Port 10001/d' /etc/ssh/sshd_config")
    faults.restart_sshd(node)

    run = examined(lab, "-p", "10001", "--select", "NC1", nodes=lab.names[:2])
    finding = run.finding("NC111")
    names = (f"{name} port=22" if name == node.name else name for name in lab.names[:2])
    mended = examined(lab, "-p", "10001", "--select", "NC1", nodes=tuple(names))

    assert run.failed() == {"NC111": {node.name}}
    assert finding["message"] == (
        "nothing listens on port 10001, but an SSH server answers on port 22: that is the host's own if the "
        "node is a container; if the node is a container, start it again on its host with docker start NAME. If it is "
        "none, list the node with port=22"
    )
    assert mended.failed() == {}


def test_an_unknown_name_and_an_unknown_host_key_are_named_and_only_a_key_that_never_changed_is_trusted_if_asked(
    lab: Lab, healthy: Run
) -> None:
    name, changed = lab.names[2], lab.nodes[0]
    known = (lab.root / "root/.ssh/known_hosts").read_text().splitlines(keepends=True)
    with lab.file_on_head("root/.ssh/known_hosts", "".join(line for line in known if not line.startswith(name))):
        run = examined(lab, *OF_LOGINS, nodes=(*lab.names, "node99"))
        assert run.failed() == {"NC001": {name, "node99"}, "NC117": {name}, "NC110": {"node99"}}
        others_whole(run, healthy, name)

        faults.change_host_key(changed)
        trusting = ncheck(lab, *PATIENT, *OF_LOGINS, "--accept-new-host-keys", hard_limit=HANGS)
        assert trusting.failed() == {"NC001": {changed.name}, "NC118": {changed.name}}
        others_whole(trusting, healthy, changed.name)


def test_all_nodes_unreached_is_no_green_report(lab: Lab) -> None:
    for node in lab.nodes:
        faults.stop_sshd(node)

    run = examined(lab)

    assert run.failed() == {"NC001": set(lab.names), "NC111": set(lab.names)}
    assert run.exit_code == 1
    assert not [v for v in run.report["verdicts"] if v["outcome"] == "passed" and v["code"] >= "NC2"]


def test_the_printed_report_names_the_node_the_cause_and_what_to_type(lab: Lab) -> None:
    faults.stop_sshd(lab.nodes[1])
    listing(lab, lab.names[:2])

    run = begin(lab, "nodes.txt", *PATIENT).wait(HANGS)

    assert run.exit_code == 1
    for words in ("NC111", "  → fix on node02: sudo systemctl restart ssh || sudo systemctl restart sshd\n"):
        assert words in run.stdout
    assert "NC001" not in run.stdout  # it only says again that the node is unreachable
    assert "node02" in run.stderr  # at once, long before the report
    assert "\033" not in run.stdout


def test_a_node_is_drained_that_no_other_node_reaches_and_not_one_that_only_this_machine_does_not(lab: Lab) -> None:
    faults.firewall(lab.nodes[1], "ip saddr 10.77.0.254 tcp dport 22 drop")
    faults.lose_everything(lab.nodes[2])

    run = examined(lab, "--probe", "none")

    nodes = {node["name"]: (node["reached"], node["peers_reach"]) for node in run.report["nodes"]}
    assert nodes == {
        "node01": (True, None), "node02": (False, True), "node03": (False, False), "node04": (True, None),
    }  # fmt: skip
    assert run.report["drain"] == ["node03"]
