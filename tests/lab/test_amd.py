"""Nodes with AMD's GPUs: stand-ins for amd-smi and rocm-smi, and a bus that shows eight MI300X."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .command import Run, begin, listing
from .layers import ADA, NCCL, PACKAGES, STANDINS, compiled
from .node import Node
from .promises import HANGS, PATIENT, QUICK, nothing_left
from .ward import Row, Ward, hold, on, ward

DRIVER = "/sys/bus/pci/drivers/amdgpu"
CODES = ("--select", "gpus", "--mesh", "none")


def turn_to_amd(node: Node, tool: str, gpus: int = 8, without_driver: int = 0) -> None:
    """Replace the node's NVIDIA GPUs: the bus shows eight accelerators, the tool lists so many."""
    node.sh("rm /usr/local/bin/nvidia-smi /usr/lib/libnvidia-ml.so.1 /usr/lib/libcuda.so.1")
    text = (STANDINS / tool).read_text().replace("GPUS=8", f"GPUS={gpus}")
    node.write(f"/usr/local/bin/{tool}", text, 0o755)
    lines = ["mount -t tmpfs none /sys/module", "mkdir /sys/module/amdgpu", "mount -t tmpfs none /sys/bus/pci"]
    lines += ["mkdir -p /sys/bus/pci/drivers/amdgpu /sys/bus/pci/devices"]
    for bus in range(1, 9):
        folder = f"/sys/bus/pci/devices/0000:{bus:x}5:00.0"
        lines += [f"mkdir {folder}", f"echo 0x1002 >{folder}/vendor", f"echo 0x120000 >{folder}/class"]
        lines += [f"echo 0x74a1 >{folder}/device", f"mkdir {folder}/ras"]
        lines += [f"printf 'ue: 0\\nce: 1\\n' >{folder}/ras/umc_err_count"]
        if bus > without_driver:
            lines += [
                f"ln -s /sys/bus/pci/drivers/amdgpu {folder}/driver",
                f"ln -s {folder} /sys/bus/pci/drivers/amdgpu",
            ]
    node.sh("; ".join(lines))


def install_rocm(node: Node) -> None:
    """Replace NCCL by RCCL and HIP, with two GPUs; RCCL reads a file of its own."""
    node.sh(f"rm -r /{PACKAGES}/nvidia*; mkdir /opt/rocm; mkdir -p /usr/lib")
    node.write("/usr/lib/librccl.so.1", compiled(NCCL / "nccl.c", "-DRCCL", "-DCODE=22203", '-DTEXT="2.22.3"'), 0o755)
    node.write("/usr/lib/libamdhip64.so.6", compiled(NCCL / "hip.c"), 0o755)
    node.write("/etc/nccl.conf", "NCCL_SOCKET_IFNAME==nothing\n")  # RCCL does not read it
    node.write("/etc/rccl.conf", f"RCCL_MSCCL_ENABLE={0 if node.name.endswith('1') else 1}\n")


def bad_memory(node: Node) -> None:
    turn_to_amd(node, "amd-smi")
    counts = "/sys/bus/pci/drivers/amdgpu/0000:35:00.0/ras"
    node.sh(f"printf 'ue: 2\\nce: 0\\n' >{counts}/umc_err_count")


def hanging_tool(node: Node) -> None:
    turn_to_amd(node, "amd-smi")
    node.write("/usr/local/bin/amd-smi", "#!/bin/sh\nexec sleep 1000\n", 0o755)


ROWS = (
    Row("seven of eight AMD GPUs and one without a driver", "NC561 NC501", on(turn_to_amd, "amd-smi", 7, 1),
        "1 of 8 AMD GPUs have no driver: 0000:15:00.0"),
    Row("bad memory of an AMD GPU", "NC560", on(bad_memory)),
    Row("amd-smi hangs", "NC505", on(hanging_tool)),
)  # fmt: skip


@pytest.fixture(scope="module")
def amd() -> Iterator[Ward]:
    """Four nodes are healthy: two by either tool."""

    def prepare(made: Ward) -> None:
        for name, tool in zip(made.whole, ("amd-smi", "amd-smi", "rocm-smi", "rocm-smi"), strict=True):
            turn_to_amd(made.lab.nodes[made.lab.names.index(name)], tool)
            if tool == "amd-smi":
                install_rocm(made.lab.nodes[made.lab.names.index(name)])

    with ward(ROWS, whole=4, prepare=prepare) as made:
        yield made


@pytest.fixture(scope="module")
def run(amd: Ward) -> Run:
    return amd.examined(*CODES, waits=QUICK, user=ADA)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_a_lost_gpu_bad_memory_and_a_tool_that_hangs_are_named(amd: Ward, run: Run, row: Row) -> None:
    hold(amd, run, row)


def test_of_a_tool_that_hangs_nothing_is_taken_for_known(amd: Ward, run: Run) -> None:
    assert run.finding("NC505")["summary"] == "amd-smi hangs"
    assert {"NC501", "NC502", "NC503", "NC504"} <= run.unknown(amd.node("amd-smi hangs").name)


def test_healthy_nodes_are_green_by_either_tool_for_an_ordinary_user(amd: Ward, run: Run) -> None:
    assert run.failed() == amd.failing
    assert {name: run.unknown(name) for name in amd.whole} == {name: set() for name in amd.whole}
    systems = [system for system in run.report["systems"] if set(system["nodes"]) & set(amd.whole)]
    assert {name for system in systems for name in system["nodes"]} >= set(amd.whole)
    for system in systems:
        assert (system["gpus"]["models"], system["gpus"]["driver"]) == ({"AMD Instinct MI300X": 8}, "6.16.6")
        assert system["topology"] == "8 GPUs, XGMI all to all"


def test_rccl_sums_over_two_nodes_and_its_own_file_is_compared(amd: Ward) -> None:
    listing(amd.lab, [f"{name} slots=1" for name in amd.whole[:2]], ADA)
    with nothing_left(amd.lab):
        asked = ("probe", "nodes.txt", "-o", "json", "--sizes", "64K", "--repeats", "1", *PATIENT)
        run = begin(amd.lab, *asked, user=ADA).wait(HANGS)
    assert (run.report["probe"]["ran"], run.report["probe"]["means"]) == (True, "nccl")
    (whole,) = (one for one in run.report["measurements"] if one["stage"] == "all")
    assert (whole["nodes"], [point["wrong"] for point in whole["curve"]]) == (list(amd.whole[:2]), [0, 0])
    assert {code: nodes for code, nodes in run.failed().items() if code.startswith("NC7")} == {}
    assert run.finding("NC335")["fix"] == "sudo sed -i 's/^RCCL_MSCCL_ENABLE=.*/RCCL_MSCCL_ENABLE=0/' /etc/rccl.conf"
