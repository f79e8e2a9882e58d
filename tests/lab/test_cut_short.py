"""Nodes and runs that end half-way: what was answered is kept, and nobody is left waiting."""

from __future__ import annotations

from collections import Counter

import pytest

from . import faults
from .command import Run, begin, listing
from .hosts import Lab
from .promises import HANGS, PATIENT, SLACK, eventually, nothing_left, others_whole

# A dead connection is noticed within twenty seconds, and the agent behind it ends five seconds after the deadline.
WAITS = ("--connect-timeout", "10", "--command-timeout", "60", "--deadline", "36")
TRANSPORTS = ("auto", "openssh")
OF_GPUS = ("--select", "NC0,NC5", "--mesh", "none")


def test_a_link_cut_in_the_middle_of_the_answers_is_named_over_both_transports(lab: Lab, healthy: Run) -> None:
    node = lab.nodes[3]
    faults.wait_in_nvidia_smi(node, seconds=600)
    listing(lab, lab.names[1:])

    def both_wait() -> bool:
        return max(Counter(line for line in node.processes().values() if "nvidia-smi" in line).values(), default=0) == 2

    # Of a connection that is dead for good, sshd's own end knows nothing for many minutes: only its process may stay.
    # The agent there ends five seconds after the deadline.
    with nothing_left(lab, settle=60, but="sshd: root"):
        asked = ("nodes.txt", "-o", "json", "--select", "NC0,NC1,NC5", *WAITS)
        runs = [begin(lab, *asked, "--transport", transport) for transport in TRANSPORTS]
        assert eventually(both_wait, wanted=True, seconds=30)
        node.sh("ip link set eth0 down")
        ended = [running.wait(HANGS) for running in runs]

    for run in ended:
        assert run.failed()["NC127"] == {node.name}, run.not_passed(node.name)
        # NC132: nor can the others' own ssh get there any more. NC317: the other run's agent listens there, too.
        assert set(run.failed()) <= {"NC127", "NC132", "NC317"}
        assert run.report["seconds"] <= 34
        others_whole(run, healthy, node.name, lab.names[0], but="NC132 NC317")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_ncheck_ended_by_sigkill_leaves_no_process_and_no_file_on_any_host(lab: Lab, transport: str) -> None:
    nodes = lab.nodes[:2]
    for node in nodes:
        faults.wait_in_nvidia_smi(node, seconds=600)
    listing(lab, lab.names[:2])

    with nothing_left(lab):
        running = begin(lab, "nodes.txt", "-o", "json", "--transport", transport, *OF_GPUS, *PATIENT)
        assert eventually(lambda: all(n.path(faults.CALLED).exists() for n in nodes), wanted=True, seconds=60)
        running.kill()
        running.process.communicate(timeout=60)


# What a client of the Model Context Protocol sends to have the nodes examined.
EXAMINE = """\
{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, \
"clientInfo": {"name": "lab", "version": "1"}}}
{"jsonrpc": "2.0", "method": "notifications/initialized"}
{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "examine", "arguments": {}}}
"""


def test_the_end_of_an_assistants_server_leaves_no_process_and_no_file_on_any_host(lab: Lab) -> None:
    pytest.importorskip("mcp")
    nodes = lab.nodes[:2]
    for node in nodes:
        faults.wait_in_nvidia_smi(node, seconds=600)
    listing(lab, lab.names[:2])

    with nothing_left(lab):
        running = begin(lab, "mcp", "nodes.txt", *OF_GPUS, *PATIENT)
        assert running.process.stdin
        running.process.stdin.write(EXAMINE)
        running.process.stdin.flush()
        assert eventually(lambda: all(n.path(faults.CALLED).exists() for n in nodes), wanted=True, seconds=60)
        running.kill()
        running.process.communicate(timeout=60)


def test_an_interrupt_reports_what_is_known_so_far(lab: Lab) -> None:
    node = lab.nodes[0]
    faults.wait_in_nvidia_smi(node, seconds=600)
    listing(lab, lab.names[:2])

    with nothing_left(lab):
        running = begin(lab, "nodes.txt", "-o", "json", *OF_GPUS, *PATIENT, "--command-timeout", "200")
        assert eventually(node.path(faults.CALLED).exists, wanted=True, seconds=60)
        running.interrupt()
        run = running.wait(60)

    assert (run.exit_code, run.report["exit_code"], run.report["interrupted"]) == (130, 130, True)
    assert run.failed().get("NC001", set()) <= {node.name}


def test_the_deadline_ends_a_run_and_blames_no_node(lab: Lab) -> None:
    node = lab.nodes[0]
    faults.wait_in_nvidia_smi(node, seconds=600)
    listing(lab, lab.names[:2])

    with nothing_left(lab):
        run = begin(lab, "nodes.txt", "-o", "json", *OF_GPUS, "--command-timeout", "300", "--deadline", "6").wait(HANGS)

    assert run.report["seconds"] <= 6 + SLACK
    assert run.failed() == {}, run.not_passed(node.name)
    assert run.exit_code == 1
    assert {v["outcome"] for v in run.report["verdicts"] if node.name in v["nodes"] and v["code"] == "NC505"} != {
        "passed"
    }
