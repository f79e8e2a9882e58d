"""A node that can be logged in to and is sick: named with its cause, whole otherwise, and the others untouched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from . import faults, layers
from .command import Run
from .fixes import type_fixes, typed_in
from .hosts import Lab
from .layers import ADA
from .node import Node
from .promises import QUICK, examined, others_whole
from .stuck import stuck_folder
from .ward import BETWEEN_NODES, Row, Ward, bashrc, changed, hold, hold_whole, nothing, on, selected, sh, ward


def print_no_utf_8(_lab: Lab, node: Node) -> None:
    for name in ("mpirun", "horovodrun", "nvidia-smi"):
        faults.program(node, name, "printf '\\377\\376\\200 \\033]0;owned\\007\\n'")


@contextmanager
def sleeping_in_nvidia_smi(node: Node) -> Iterator[None]:
    """Let nvidia-smi sleep where no signal comes; see that it did."""
    with stuck_folder(node, "/run/stuck"):
        yield
        stuck = [line for line in node.processes().values() if line == "cat /run/stuck/device"]
        assert stuck, "nothing hung: the test did not test"


@contextmanager
def process_stuck(node: Node) -> Iterator[None]:
    with stuck_folder(node, "/run/stuck"):
        while not stuck_there(node):
            pass
        yield


def stuck_there(node: Node) -> bool:
    """Start a process that looks into the folder, and tell whether a signal no longer ends it: FUSE took its question.

    One whose question was not yet taken is ended by the signal, and leaves nothing.
    """
    looking = "setsid cat /run/stuck/data > /dev/null 2>&1 < /dev/null & sleep 0.1; kill -9 $!; sleep 0.1"
    return node.sh(f"{looking}; ps -o stat= -p $! || true").stdout.startswith("D")


# A user's systemd, which adopts what its children leave (PR_SET_CHILD_SUBREAPER), and a launcher that ends at once.
ADOPTS = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.prctl(36, 1)
libc.prctl(15, b"systemd")
if not os.fork():
    if not os.fork():
        os.environ["TORCHELASTIC_RUN_ID"] = "none"
        os.execvp("sh", ["sh", "-c", "exec 9>/dev/shm/nccl-x; exec sleep 600"])
    os._exit(0)
time.sleep(600)
"""


def leave_rank(_lab: Lab, node: Node) -> None:
    """Leave a rank as torchrun's end by SIGKILL does: it sleeps, and holds a file of shared memory."""
    node.write("/run/adopts.py", ADOPTS)
    node.sh("(setsid /usr/bin/python3 /run/adopts.py > /dev/null 2>&1 < /dev/null &)")


# What a program prints in 1 GB, others tell.
ROWS = (
    Row("programs that print no UTF-8", "NC002", print_no_utf_8, unknown="NC203 NC204 NC205 NC212 NC213 NC237"),
    Row(
        "a clock an hour ahead",
        "NC603",
        on(faults.shift_clock, "+1h"),
        beside="programs that print no UTF-8",
    ),
    Row("a start-up file that prints", "NC130", bashrc("echo Welcome to $HOSTNAME; printf '\\033[2J\\377\\376\\n'")),
    Row(
        "no libmpi",
        "NC214",
        sh("rm /usr/lib/*-linux-gnu/libmpi.so* /usr/lib/*-linux-gnu/openmpi/lib/libmpi.so*"),
        unknown="NC210",
        beside="a start-up file that prints",
    ),
    Row("1 GB of nvidia-smi", "", on(faults.program, "nvidia-smi", "head -c 1G /dev/zero | tr '\\0' x")),
    Row("no python3", "NC125", on(faults.remove_python)),
    Row("a python3 that crashes", "NC125", on(faults.program, "python3", "kill -SEGV $$")),
    Row("nvidia-smi hangs", "NC505", on(faults.hang_nvidia_smi)),
    Row(
        "nvidia-smi hangs in state D",
        "NC505 NC620 NC641",
        on(faults.program, "nvidia-smi", "exec cat /run/stuck/device"),
        during=sleeping_in_nvidia_smi,
    ),
    Row("full disks", "NC604 NC606 NC646", on(faults.fill_disks)),
    Row("read-only disks", "NC607 NC609 NC610 NC611", on(faults.lock_disks), beside="1 GB of nvidia-smi"),
    Row("a process in state D for good", "NC620 NC641", nothing, "in the kernel: cat", process_stuck),
    Row(
        "a rank without its launcher",
        "NC633",
        leave_rank,
        "1 rank of an earlier job is still there",
        beside="nvidia-smi hangs",
    ),
)


@pytest.fixture(scope="module")
def sick() -> Iterator[Ward]:
    with ward(ROWS) as made:
        yield made


@pytest.fixture(scope="module")
def run(sick: Ward, healthy: Run) -> Run:
    return sick.examined(*selected(healthy, *BETWEEN_NODES), waits=QUICK)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_a_fault_is_named_and_costs_no_other_verdict(sick: Ward, run: Run, healthy: Run, row: Row) -> None:
    node = hold(sick, run, row)

    if row.codes != "NC125":  # without Python, all is unknown but the login
        assert set(changed(run, healthy, node)) == sick.failing_beside(row) | sick.unknown_beside(row)


def test_the_others_are_whole_and_the_run_ends_in_exit_1(sick: Ward, run: Run, healthy: Run) -> None:
    hold_whole(sick, run, healthy)
    assert run.failed() == sick.failing
    assert (run.exit_code, run.outcomes()["crashed"]) == (1, 0)
    assert [n["reached"] for n in run.report["nodes"]] == [True] * len(sick.lab.names)
    assert "\033" not in run.stdout
    assert len(run.stdout) < 1_000_000


def test_a_start_up_file_that_prints_is_a_warning_and_a_python3_that_is_not_there_is_to_be_installed(
    sick: Ward, run: Run
) -> None:
    assert run.finding("NC130")["severity"] == "warning"
    fixes = {f["nodes"][0]: "install" in f["fix"] for f in run.report["findings"] if f["code"] == "NC125"}
    assert fixes == {sick.node("no python3").name: True, sick.node("a python3 that crashes").name: False}


def test_without_nvidia_smi_the_bus_and_nvml_show_the_same_matrix(sick: Ward, run: Run) -> None:
    assert {"nvidia-smi" in one["message"] for one in run.report["findings"] if one["code"] == "NC505"} == {True}
    without = [sick.name(row) for row in ROWS if "nvidia-smi" in row.fault or row.codes == "NC002"]
    shown = [name for name in sick.lab.names if name not in run.failed()["NC125"] and name not in without]
    drawn = {board["source"]: (board["nodes"], board["nvlinks"]) for board in run.report["boards"]}
    assert drawn == {
        "nvidia-smi": (shown, ["NVLink NV12: every two of 2 GPUs"]),
        "the PCI bus and NVML": (without, ["NVLink NV12: every two of 2 GPUs"]),
    }


def test_a_clock_that_is_off_is_told_in_seconds(run: Run) -> None:
    # node13: 3599.9 s ahead
    (line,) = run.finding("NC603")["evidence"]
    seconds = [float(number) for number in re.findall(r"([0-9.]+) s", line)]
    assert seconds == [pytest.approx(3600, abs=60)], line


def test_what_an_ordinary_user_cannot_use_on_one_node_is_named(lab: Lab) -> None:
    lines = {
        "chmod 755 /tmp": "NC607",
        "chmod 755 /dev/shm": "NC610",
        "mount --bind /home/ada /home/ada; mount -o remount,bind,ro /home/ada": "NC611",
        "sed -i 's/^ada:x:4242:/ada:x:4343:/' /etc/passwd; chown -R 4343 /home/ada": "NC612",
    }
    for node, line in zip(lab.nodes, lines, strict=True):
        node.sh(line)

    run = examined(lab, "--select", "NC6", "--mesh", "none", user=ADA)

    named = {code: {name} for name, code in zip(lab.names, lines.values(), strict=True)}
    assert run.failed() == named, [run.not_passed(name) for name in lab.names]

    type_fixes(lab, run, typed_in("test_sick.py"))
    again = examined(lab, "--select", ",".join(named), "--mesh", "none", user=ADA)

    assert again.failed() == {code: named[code] for code in ("NC611", "NC612")}


def test_two_nodes_with_different_nccl_are_both_named_and_none_is_the_majority(lab: Lab) -> None:
    faults.nccl(lab.nodes[1], "2.21.5")

    run = examined(lab, "--select", "NC201", nodes=lab.names[:2])

    assert run.failed() == {"NC201": {"node01", "node02"}}


def test_real_libraries_of_nccl_are_told_apart_by_their_own_word(
    lab: Lab, healthy: Run, nccl_folder: Callable[[str], Path]
) -> None:
    old, new = nccl_folder("2.19.3") / "libnccl.so.2", nccl_folder("2.28.3") / "libnccl.so.2"
    place = f"{layers.PACKAGES}/nvidia/nccl/lib/libnccl.so.2"
    lab.remake(*lab.nodes[:2], real={place: new})
    lab.remake(lab.nodes[2], real={place: old})

    run = examined(lab, "--select", "NC2", nodes=lab.names[:3])

    assert run.failed() == {"NC201": {"node03"}}, run.not_passed("node03")
    assert run.finding("NC201")["message"] == "NCCL differs: 2.28.3 on node[01-02], 2.19.3 on node03 (2 to 1)"
    others_whole(run, healthy, "node03", "node04")


OF_ADAPTERS = ("--select", "NC4", "--mesh", "none")


def test_ports_that_poll_or_are_in_other_subnets_and_partitions_and_closed_devices_are_named_by_ibstat_and_by_sysfs(
    lab: Lab,
) -> None:
    faulty: list[dict[str, str]] = [
        {}, {"mlx5_0/ports/1/sm_lid": "0x9"}, {"mlx5_1/ports/1/pkeys/0": "0x8007", "mlx5_0/fw_ver": "20.28.1002"}, {},
    ]  # fmt: skip
    for node, files in zip(lab.nodes, faulty, strict=True):
        polling = ("mlx5_1",) if node is lab.nodes[1] else ()
        faults.infiniband(node, polling=polling, files=files, closed=node is lab.nodes[3])

    by_ibstat = examined(lab, *OF_ADAPTERS)
    for node in lab.nodes:
        faults.hide_program(node, "/usr/sbin/ibstat")
    by_sysfs = examined(lab, *OF_ADAPTERS)

    for run in (by_ibstat, by_sysfs):
        assert {code: nodes for code, nodes in run.failed().items() if code.startswith("NC4")} == {
            "NC402": {"node02"}, "NC411": {"node04"}, "NC413": {"node02"}, "NC415": {"node03"}, "NC418": {"node03"},
        }  # fmt: skip
        assert "mlx5_1" in run.finding("NC402")["message"]
        assert "No such file or directory" in run.finding("NC411")["message"]
    assert by_ibstat.verdicts() == by_sysfs.verdicts()


def test_a_card_that_is_gone_from_the_bus_one_without_a_driver_and_those_without_a_library_are_named(lab: Lab) -> None:
    for node in lab.nodes:
        lost = ("mlx5_1",) if node is lab.nodes[0] else ()
        faults.infiniband(node, lost=lost, driverless=("mlx5_1",) if node is lab.nodes[3] else ())
    lab.nodes[1].sh("rm /usr/lib/*-linux-gnu/libibverbs/libmlx5-*.so")
    lab.nodes[2].sh("rm /usr/lib/*-linux-gnu/libibverbs.so*")

    run = examined(lab, *OF_ADAPTERS)

    assert {code: nodes for code, nodes in run.failed().items() if code.startswith("NC4")} == {
        "NC405": set(lab.names), "NC408": {"node02", "node03"}, "NC409": {"node01"}, "NC410": {"node04"},
    }  # fmt: skip
    assert "nothing at 0000:3c:00.0" in run.finding("NC409")["message"]
    assert run.finding("NC405")["see"] == ["NC409", "NC410"]
    libraries = {one["nodes"][0]: one["message"] for one in run.report["findings"] if one["code"] == "NC408"}
    assert "lists no HCA" in libraries["node02"], libraries


def test_docker0_with_one_address_everywhere_is_no_alarm_and_is_kept_out_of_the_plan(lab: Lab, healthy: Run) -> None:
    names = lab.names[:2]
    for node in lab.nodes[:2]:
        faults.docker_bridge(node)

    run = examined(lab, *selected(healthy, *BETWEEN_NODES), nodes=names)

    assert run.failed() == {"NC356": set(names)}
    assert run.finding("NC356")["severity"] == "info"
    assert run.exit_code == 0
    line = run.report["plan"]["lines"]["mpirun"]
    assert "btl_tcp_if_include" in line
    assert "docker0" not in line
    assert "NCCL_SOCKET_IFNAME" in run.report["plan"]["env"]
