"""The job's file systems on real hosts: one that hangs in the kernel, one that is missing, one that is full."""

from __future__ import annotations

from .command import Run, begin, listing
from .hosts import Lab
from .layers import ADA
from .node import Node
from .promises import HANGS, QUICK, examined, nothing_left
from .stuck import stuck_folder

OF_HOSTS = ("--select", "NC6", "--mesh", "none")
DATA = "/run/data"  # in memory of the node's own: no trace in its tree


def in_state_d(node: Node) -> list[int]:
    """Return the processes of a node that sleep where no signal reaches them."""
    states = {
        pid: (node.root / f"proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in node.processes()
    }
    return [pid for pid, state in states.items() if state == "D"]


def test_a_mount_that_hangs_is_named_and_nothing_waits_for_it(lab: Lab, healthy: Run) -> None:
    node = lab.nodes[2]
    for other in lab.nodes:
        other.sh(f"mkdir {DATA}")
    listing(lab, lab.names)
    with nothing_left(lab), stuck_folder(node, DATA), stuck_folder(node, "/run/archive"):
        run = begin(lab, "nodes.txt", "-o", "json", *QUICK, *OF_HOSTS, "--data", DATA).wait(HANGS)
        stuck = in_state_d(node)

    assert stuck, "nothing hung: the test did not test"
    assert run.report["seconds"] < 40
    assert run.failed() == {
        "NC640": {node.name}, "NC641": {node.name}, "NC645": set(lab.names) - {node.name},
    }, run.not_passed(node.name)  # fmt: skip
    assert run.finding("NC640")["message"] == f"{DATA} (--data): {DATA} (fuse from stuck) does not answer"
    assert run.finding("NC641")["message"] == "/run/archive (fuse from stuck) does not answer"
    assert run.unknown(node.name) == healthy.unknown(node.name)


def test_the_storage_probe_reads_on_every_node_and_changes_nothing(lab: Lab) -> None:
    names = lab.names[:2]
    for node in lab.nodes[:2]:
        node.sh(f"mkdir {DATA}; head -c 8M /dev/zero >{DATA}/large; touch {DATA}/empty")

    run = examined(lab, "--select", "NC64,NC65", "--mesh", "none", "--data", DATA, "--storage-probe", nodes=names)

    # Hosts of one machine: how fast they are says nothing.
    assert {run.verdicts()["NC651", name] for name in names} <= {"passed", "failed"}
    assert run.failed().keys() <= {"NC645", "NC651", "NC652"}


def test_a_folder_that_is_missing_closed_or_full_is_named_as_the_jobs_user_sees_it(lab: Lab) -> None:
    missing, closed, full = lab.nodes[:3]
    for node in lab.nodes:
        node.sh(f"mkdir {DATA}")
    missing.sh(f"rmdir {DATA}")
    closed.sh(f"chmod 700 {DATA}")
    full.sh("mkdir /run/cache; mount -t tmpfs -o size=1m,mode=1777 tmpfs /run/cache")
    full.sh("cat /dev/zero 2>&- >/run/cache/fill || :")
    full.sh("echo export HF_HOME=/run/cache/hf >>/home/ada/.bashrc")

    run = examined(lab, "--select", "NC64", "--mesh", "none", "--data", DATA, user=ADA)

    messages = {
        finding["message"]: finding["nodes"] for finding in run.report["findings"] if finding["code"] == "NC642"
    }
    assert messages == {
        f"{DATA} (--data) does not exist": [missing.name],
        f"{DATA} (--data) cannot be read by the job's user": [closed.name],
    }
    assert run.finding("NC646")["message"] == "/run/cache/hf (HF_HOME): 0 B free"
    assert run.failed() == {
        "NC642": {missing.name, closed.name}, "NC645": set(lab.names) - {missing.name}, "NC646": {full.name},
    }  # fmt: skip
