"""A node that cannot be logged in to: named, with its own cause, and all others as if nothing were wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from . import faults
from .command import Run, begin, listing, ncheck
from .hosts import Lab
from .node import Node
from .promises import HANGS, PATIENT, QUICK, examined, others_whole

Fault = Callable[[Node], object]
UNREACHED: dict[str, tuple[str, Fault]] = {
    "packets dropped": ("NC112", faults.lose_everything),
    "sshd frozen": ("NC115", faults.freeze_sshd),
    "packets over 600 bytes lost": ("NC116", faults.lose_large_packets),
    "start-up file that hangs": ("NC124", lambda node: faults.start_up_file(node, "sleep 20")),
    "sshd stopped": ("NC111", faults.stop_sshd),
    "another server on the port": ("NC114", faults.serve_http),
    "host key changed": ("NC118", faults.change_host_key),
    "keys refused": ("NC120", faults.refuse_keys),
    "nologin": ("NC124", lambda node: faults.login_shell(node, "/usr/sbin/nologin")),
    "1 GB banner": ("NC128", lambda node: faults.start_up_file(node, "head -c 1G /dev/zero | tr '\\0' x")),
    "start-up file that exits": ("NC124", lambda node: faults.start_up_file(node, "exit 3")),
    "start-up file that replaces the shell": ("NC129", lambda node: faults.start_up_file(node, "exec sh")),
}

# Two at a time, for two to be whole: each run waits for what never answers.
NAMES = tuple(UNREACHED)
PAIRS = tuple(NAMES[start : start + 2] for start in range(0, len(NAMES), 2))


@pytest.mark.parametrize("transport", ["auto", "openssh"])
@pytest.mark.parametrize("pair", PAIRS, ids=", ".join)
def test_a_node_that_is_not_reached_is_named_with_its_cause(
    lab: Lab, healthy: Run, pair: tuple[str, ...], transport: str
) -> None:
    codes: dict[str, set[str]] = {}
    for fault, node in zip(pair, lab.nodes[1:], strict=False):
        code, hurt = UNREACHED[fault]
        hurt(node)
        codes.setdefault(code, set()).add(node.name)

    # Where packets are lost the node never learns that we left: sshd waits for its own LoginGraceTime.
    run = examined(lab, "--transport", transport, waits=QUICK)

    _blamed(run, codes)
    others_whole(run, healthy, *set().union(*codes.values()))


def _blamed(run: Run, codes: Mapping[str, set[str]]) -> None:
    """Only NC001 and the cause fail, on these nodes alone; what needs them is unknown there, and nothing passed."""
    hurt = set().union(*codes.values())
    assert run.failed() == {"NC001": hurt, **codes}, [run.not_passed(node) for node in sorted(hurt)]
    told = run.verdicts(*hurt)
    assert {c for (c, _), outcome in told.items() if outcome == "passed" and c >= "NC2"} == set()
    assert all(finding["fix"] for finding in run.report["findings"] if finding["code"] in codes)
    assert run.exit_code == 1
    assert {n["name"] for n in run.report["nodes"] if not n["reached"]} == hurt


def test_a_server_on_another_port_is_named_and_the_fix_starts_one_without_systemd(lab: Lab) -> None:
    node = lab.nodes[1]
    node.sh("sed -i '/^Port 10001/d' /etc/ssh/sshd_config")
    faults.restart_sshd(node)

    run = examined(lab, "-p", "10001", "--select", "NC1")
    finding = run.finding("NC111")
    node.sh(finding["fix"].removeprefix("sudo ") + " -o PidFile=none")
    mended = examined(lab, "-p", "10001", "--select", "NC1")

    assert run.failed() == {"NC111": {node.name}}
    assert finding["message"] == (
        "nothing listens on port 10001, but an SSH server answers on port 22: list the node with port=22, "
        "or start the server, or its container, on port 10001"
    )
    assert mended.failed() == {}


def test_an_unknown_name_and_an_unknown_host_key_are_named_and_only_a_key_that_never_changed_is_trusted_if_asked(
    lab: Lab, healthy: Run
) -> None:
    name, changed = lab.names[2], lab.nodes[0]
    known = (lab.root / "root/.ssh/known_hosts").read_text().splitlines(keepends=True)
    with lab.file_on_head("root/.ssh/known_hosts", "".join(line for line in known if not line.startswith(name))):
        run = examined(lab, nodes=(*lab.names, "node99"))
        assert run.failed() == {"NC001": {name, "node99"}, "NC117": {name}, "NC110": {"node99"}}
        others_whole(run, healthy, name)

        faults.change_host_key(changed)
        trusting = ncheck(lab, *PATIENT, "--accept-new-host-keys", hard_limit=HANGS)
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
