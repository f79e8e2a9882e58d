"""Nodes and runs that end half-way: what was answered is kept, and nobody is left waiting."""

from __future__ import annotations

import pytest

from . import faults
from .command import Run, begin, listing
from .hosts import Lab
from .promises import QUICK, eventually, nothing_left, others_whole


@pytest.mark.parametrize("transport", ["auto", "openssh"])
def test_a_link_cut_in_the_middle_of_the_answers_is_named(lab: Lab, healthy: Run, transport: str) -> None:
    node = lab.nodes[3]
    faults.wait_in_nvidia_smi(node, seconds=2)
    listing(lab, lab.names)

    # Of a connection that is dead for good, sshd's own end knows nothing for many minutes: only its process may stay.
    with nothing_left(lab, settle=20, but="sshd: root"):
        running = begin(lab, "nodes.txt", "-o", "json", "--transport", transport, *QUICK)
        assert eventually(node.path(faults.CALLED).exists, wanted=True, seconds=15)
        node.sh("ip link set eth0 down")
        run = running.wait(45)

    assert run.failed()["NC127"] == {node.name}, run.told(node.name)
    assert set(run.failed()) <= {"NC127", "NC131"}  # NC131: nor can the others' own ssh get there any more
    assert run.report["seconds"] <= 22
    others_whole(run, healthy, node.name, but="NC131")


@pytest.mark.parametrize("transport", ["auto", "openssh"])
def test_ncheck_ended_by_sigkill_leaves_no_process_and_no_file_on_any_host(lab: Lab, transport: str) -> None:
    for node in lab.nodes:
        faults.wait_in_nvidia_smi(node, seconds=100)
    listing(lab, lab.names)

    with nothing_left(lab, settle=10):
        running = begin(lab, "nodes.txt", "-o", "json", "--transport", transport)
        assert eventually(lambda: all(n.path(faults.CALLED).exists() for n in lab.nodes), wanted=True, seconds=15)
        running.kill()
        running.process.communicate(timeout=10)


def test_an_interrupt_reports_what_is_known_so_far(lab: Lab) -> None:
    node = lab.nodes[0]
    faults.wait_in_nvidia_smi(node, seconds=100)
    listing(lab, lab.names)

    with nothing_left(lab, settle=10):
        running = begin(lab, "nodes.txt", "-o", "json", "--command-timeout", "40")
        assert eventually(node.path(faults.CALLED).exists, wanted=True, seconds=15)
        running.interrupt()
        run = running.wait(15)

    assert (run.exit_code, run.report["exit_code"], run.report["interrupted"]) == (130, 130, True)
    assert run.failed().get("NC001", set()) <= {node.name}


def test_the_deadline_ends_a_run_and_blames_no_node(lab: Lab) -> None:
    node = lab.nodes[0]
    faults.wait_in_nvidia_smi(node, seconds=100)
    listing(lab, lab.names)

    with nothing_left(lab, settle=10):
        run = begin(lab, "nodes.txt", "-o", "json", "--command-timeout", "60", "--deadline", "6").wait(20)

    assert run.report["seconds"] <= 7.5
    assert run.failed() == {}, run.told(node.name)
    assert run.exit_code == 1
    assert {v["outcome"] for v in run.report["verdicts"] if v["node"] == node.name and v["code"] == "NC505"} != {
        "passed"
    }
