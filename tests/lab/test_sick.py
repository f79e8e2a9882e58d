"""A node that can be logged in to and is sick: named with its cause, whole otherwise, and the others untouched."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from . import faults, layers
from .command import Run, begin, listing
from .hosts import Lab
from .layers import ADA
from .promises import HANGS, QUICK, SLACK, examined, nothing_left, others_whole
from .stuck import stuck_folder


def test_a_banner_output_that_is_not_utf_8_and_1_gb_of_it_crash_nothing_and_cost_no_other_verdict(
    lab: Lab, healthy: Run
) -> None:
    """A banner on standard output is a warning; what a command says in 1 GB, others tell."""
    garbled, welcoming, flooding = lab.nodes[:3]
    for name in ("mpirun", "horovodrun", "nvidia-smi"):
        faults.program(garbled, name, "printf '\\377\\376\\200 \\033]0;owned\\007\\n'")
    faults.start_up_file(welcoming, "echo Welcome to $HOSTNAME; printf '\\033[2J\\377\\376\\n'")
    faults.program(flooding, "nvidia-smi", "head -c 1G /dev/zero | tr '\\0' x")

    run = examined(lab)

    not_passed = {node.name: run.not_passed(node.name) for node in lab.nodes}
    assert {code: nodes for code, nodes in run.failed().items() if nodes != {garbled.name}} == {
        "NC130": {welcoming.name}
    }, not_passed
    assert run.finding("NC130")["severity"] == "warning"
    assert {c for (c, _), o in run.verdicts(welcoming.name).items() if o == "passed"} == {
        c for (c, _), o in healthy.verdicts(welcoming.name).items() if o == "passed"
    } - {"NC130"}
    assert run.outcomes()["crashed"] == 0
    assert run.unknown(garbled.name) >= {"NC203", "NC204"}
    assert run.unknown(flooding.name) == set(), not_passed  # NVML and the PCI bus say what nvidia-smi should
    assert "\033" not in run.stdout
    assert len(run.stdout) < 1_000_000
    others_whole(run, healthy, garbled.name, welcoming.name, flooding.name)


def test_no_python3_or_one_that_crashes_is_named_and_the_login_still_counts(lab: Lab, healthy: Run) -> None:
    node, crashing = lab.nodes[1:3]
    faults.remove_python(node)
    faults.program(crashing, "python3", "kill -SEGV $$")

    run = examined(lab)

    assert run.failed() == {"NC125": {node.name, crashing.name}}, run.not_passed(node.name)
    fixes = {f["nodes"][0]: f["fix"] for f in run.report["findings"] if f["code"] == "NC125"}
    assert {name: "install" in fix for name, fix in fixes.items()} == {node.name: True, crashing.name: False}
    assert [n["reached"] for n in run.report["nodes"]] == [True] * 4
    assert run.exit_code == 1
    others_whole(run, healthy, node.name, crashing.name)


def test_nvidia_smi_that_never_returns_or_sleeps_where_no_signal_comes_is_named_and_holds_nothing_up(
    lab: Lab, healthy: Run
) -> None:
    deaf, asleep = lab.nodes[1:3]
    faults.hang_nvidia_smi(deaf)
    faults.program(asleep, "nvidia-smi", "exec cat /run/stuck/device")
    listing(lab, lab.names)
    with nothing_left(lab), stuck_folder(asleep, "/run/stuck"):
        run = begin(lab, "nodes.txt", "-o", "json", *QUICK).wait(HANGS)
        stuck = [line for line in asleep.processes().values() if line == "cat /run/stuck/device"]

    assert stuck, "nothing hung: the test did not test"
    assert run.report["seconds"] <= 60 + SLACK
    not_passed = (run.not_passed(deaf.name), run.not_passed(asleep.name))
    own = {code: nodes for code, nodes in run.failed().items() if nodes != {asleep.name}}  # its file system hangs, too
    assert own == {"NC505": {deaf.name, asleep.name}}, not_passed
    assert {"nvidia-smi" in one["message"] for one in run.report["findings"] if one["code"] == "NC505"} == {True}
    # The PCI bus and NVML show the same matrix as nvidia-smi on the other nodes.
    drawn = {board["source"]: (board["nodes"], board["nvlinks"]) for board in run.report["boards"]}
    assert drawn == {
        "nvidia-smi": (["node01", "node04"], ["NVLink NV12: every two of 2 GPUs"]),
        "the PCI bus and NVML": ([deaf.name, asleep.name], ["NVLink NV12: every two of 2 GPUs"]),
    }
    others_whole(run, healthy, deaf.name, asleep.name)


def test_a_full_or_read_only_disk_is_named_and_changes_no_other_verdict(lab: Lab, healthy: Run) -> None:
    faults.fill_disks(lab.nodes[0])
    faults.lock_disks(lab.nodes[2])

    run = examined(lab)

    failed = {"node01": ("NC604", "NC606", "NC646"), "node03": ("NC607", "NC609", "NC610", "NC611")}
    named = dict.fromkeys(((code, node) for node, codes in failed.items() for code in codes), "failed")
    assert run.verdicts() == {**healthy.verdicts(), **named}
    assert run.exit_code == 1


@pytest.mark.parametrize(
    "lines",
    [
        {"ulimit -S -n 64": "NC605", "export TMPDIR=/proc/sys/tmp": "NC607", "export TMPDIR=/nowhere/tmp": "NC608"},
        {"ulimit -S -t 3600": "NC605", "export OMPI_MCA_btl_tcp_if_exclude=docker0": "NC212"},
        {"ulimit -S -v 4000000": "NC605", "export OMPI_MCA_btl_tcp_if_include=lo": "NC213"},
    ],
    ids=", ".join,
)
def test_what_a_start_up_file_does_to_a_launched_job_and_a_node_without_nccl_are_named(
    lab: Lab, healthy: Run, lines: dict[str, str]
) -> None:
    codes = {}
    for node, (line, code) in zip(lab.nodes[1:], lines.items(), strict=False):
        faults.start_up_file(node, line)
        codes[node.name] = code
    if len(lines) < 3:
        faults.remove_nccl(lab.nodes[3])
        codes["node04"] = "NC201"

    run = examined(lab)

    assert run.failed() == {code: {name} for name, code in codes.items()}, [run.not_passed(name) for name in codes]
    others_whole(run, healthy, *codes)


def test_what_an_ordinary_user_cannot_use_on_one_node_is_named(lab: Lab) -> None:
    lines = {
        "chmod 755 /tmp": "NC607",
        "chmod 755 /dev/shm": "NC610",
        "mount --bind /home/ada /home/ada; mount -o remount,bind,ro /home/ada": "NC611",
        "sed -i 's/^ada:x:4242:/ada:x:4343:/' /etc/passwd; chown -R 4343 /home/ada": "NC612",
    }
    for node, line in zip(lab.nodes, lines, strict=True):
        node.sh(line)

    run = examined(lab, user=ADA)

    named = {code: {name} for name, code in zip(lab.names, lines.values(), strict=True)}
    assert run.failed() == named, [run.not_passed(name) for name in lab.names]


def test_another_nccl_a_daemon_without_libmpi_and_a_clock_an_hour_off_are_named(lab: Lab, healthy: Run) -> None:
    other, broken, early = lab.nodes[1:]
    faults.nccl(other, "2.21.5")
    broken.sh("rm /usr/lib/*-linux-gnu/libmpi.so* /usr/lib/*-linux-gnu/openmpi/lib/libmpi.so*")
    faults.shift_clock(early, "+1h")

    run = examined(lab)

    named = {"NC201": {other.name}, "NC214": {broken.name}, "NC603": {early.name}}
    assert run.failed() == named, [run.not_passed(node.name) for node in lab.nodes]
    # node04: 3599.9 s ahead
    (line,) = run.finding("NC603")["evidence"]
    seconds = [float(number) for number in re.findall(r"([0-9.]+) s", line)]
    assert seconds == [pytest.approx(3600, abs=60)], line
    others_whole(run, healthy, other.name, broken.name, early.name)


def test_two_nodes_with_different_nccl_are_both_named_and_none_is_the_majority(lab: Lab) -> None:
    faults.nccl(lab.nodes[1], "2.21.5")

    run = examined(lab, nodes=lab.names[:2])

    assert run.failed() == {"NC201": {"node01", "node02"}}


def test_real_libraries_of_nccl_are_told_apart_by_their_own_word(
    lab: Lab, healthy: Run, nccl_folder: Callable[[str], Path]
) -> None:
    old, new = nccl_folder("2.19.3") / "libnccl.so.2", nccl_folder("2.28.3") / "libnccl.so.2"
    place = f"{layers.PACKAGES}/nvidia/nccl/lib/libnccl.so.2"
    lab.remake(*lab.nodes[:3], real={place: new})
    lab.remake(lab.nodes[3], real={place: old})

    run = examined(lab)

    assert run.failed() == {"NC201": {"node04"}}, run.not_passed("node04")
    assert run.finding("NC201")["message"] == "NCCL differs: 2.28.3 on node[01-03], 2.19.3 on node04 (3 to 1)"
    others_whole(run, healthy, "node04")


def test_ports_that_poll_or_are_in_other_subnets_and_partitions_and_closed_devices_are_named_by_ibstat_and_by_sysfs(
    lab: Lab,
) -> None:
    faulty: list[dict[str, str]] = [
        {}, {"mlx5_0/ports/1/sm_lid": "0x9"}, {"mlx5_1/ports/1/pkeys/0": "0x8007", "mlx5_0/fw_ver": "20.28.1002"}, {},
    ]  # fmt: skip
    for node, files in zip(lab.nodes, faulty, strict=True):
        polling = ("mlx5_1",) if node is lab.nodes[1] else ()
        faults.infiniband(node, polling=polling, files=files, closed=node is lab.nodes[3])

    by_ibstat = examined(lab)
    for node in lab.nodes:
        faults.hide_program(node, "/usr/sbin/ibstat")
    by_sysfs = examined(lab)

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

    run = examined(lab)

    assert {code: nodes for code, nodes in run.failed().items() if code.startswith("NC4")} == {
        "NC405": set(lab.names), "NC408": {"node02", "node03"}, "NC409": {"node01"}, "NC410": {"node04"},
    }  # fmt: skip
    assert "nothing at 0000:3c:00.0" in run.finding("NC409")["message"]
    assert run.finding("NC405")["see"] == ["NC409", "NC410"]
    libraries = {one["nodes"][0]: one["message"] for one in run.report["findings"] if one["code"] == "NC408"}
    assert "lists no HCA" in libraries["node02"], libraries


def test_docker0_with_one_address_everywhere_is_no_alarm_and_is_kept_out_of_the_plan(lab: Lab) -> None:
    for node in lab.nodes:
        faults.docker_bridge(node)

    run = examined(lab)

    assert run.failed() == {"NC356": set(lab.names)}
    assert run.finding("NC356")["severity"] == "info"
    assert run.exit_code == 0
    line = run.report["plan"]["lines"]["mpirun"]
    assert "btl_tcp_if_include" in line
    assert "docker0" not in line
    assert "NCCL_SOCKET_IFNAME" in run.report["plan"]["env"]
