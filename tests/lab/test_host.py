"""What limits a job on a real host, and what is stuck there: named with its cause, and the other hosts untouched."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import faults
from .command import Run, begin, listing
from .hosts import Lab
from .node import Node
from .promises import HANGS, QUICK, examined, nothing_left, others_whole
from .stuck import stuck_folder


@contextmanager
def few_processes(node: Node, most: int) -> Iterator[None]:
    """Let a login of the node have only so many processes and threads, by a control group of version 1."""
    made = Path(f"/sys/fs/cgroup/pids/ncheck-lab-{node.pid}")
    made.mkdir()
    seen = "/sys/fs/cgroup"
    node.sh(f"mount -t tmpfs cgroup {seen}; mkdir {seen}/pids; mount -t cgroup -o pids pids {seen}/pids")
    try:
        (made / "pids.max").write_text(str(most))
        faults.start_up_file(node, f"echo $$ > {made}/cgroup.procs")
        yield
    finally:
        while (made / "cgroup.procs").read_text():  # the last to end takes a moment
            time.sleep(0.05)
        made.rmdir()


def test_limits_and_a_shutdown_that_a_launched_job_meets_on_one_node_only_are_named(lab: Lab, healthy: Run) -> None:
    faults.start_up_file(lab.nodes[1], "ulimit -S -n 2000")
    faults.start_up_file(lab.nodes[2], "ulimit -S -s unlimited")
    faults.schedule_shutdown(lab.nodes[2], 48 * 3600)
    with few_processes(lab.nodes[3], 300):
        run = examined(lab)

    _, second, third, fourth = lab.names
    assert run.failed() == {"NC615": {second}, "NC616": {third}, "NC619": {fourth}, "NC659": {third}}, [
        run.not_passed(n) for n in lab.names
    ]
    assert run.finding("NC615")["message"].startswith(f"open files (nofile) limited to 2000 on {second}; ")
    assert run.finding("NC619")["message"] == (
        "a control group allows 300 processes and threads; a job here needs 1024"
    )
    assert run.finding("NC659")["message"].endswith(" UTC, in 48 h")
    assert run.exit_code == 0
    others_whole(run, healthy, second, third, fourth)


def test_a_process_that_a_file_system_does_not_let_go_is_named(lab: Lab, healthy: Run) -> None:
    node = lab.nodes[2]
    listing(lab, lab.names)
    with nothing_left(lab), stuck_folder(node, "/run/stuck"):
        while not stuck_there(node):
            pass
        run = begin(lab, "nodes.txt", "-o", "json", *QUICK).wait(HANGS)

    failed = run.failed()
    assert failed["NC620"] == {node.name}, run.not_passed(node.name)
    assert {name for nodes in failed.values() for name in nodes} == {node.name}, failed
    assert "in the kernel: cat" in run.finding("NC620")["message"]
    others_whole(run, healthy, node.name)


def stuck_there(node: Node) -> bool:
    """Start a process that looks into the folder, and tell whether a signal no longer ends it: FUSE took its question.

    One whose question was not yet taken is ended by the signal, and leaves nothing.
    """
    looking = "setsid cat /run/stuck/data > /dev/null 2>&1 < /dev/null & sleep 0.1; kill -9 $!; sleep 0.1"
    return node.sh(f"{looking}; ps -o stat= -p $! || true").stdout.startswith("D")
