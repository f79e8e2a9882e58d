"""Nodes with AMD's GPUs: stand-ins for amd-smi and rocm-smi, and a bus that shows eight MI300X."""

from __future__ import annotations

from .hosts import Lab
from .layers import ADA, STANDINS
from .node import Node
from .promises import examined

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


def test_healthy_nodes_are_green_by_either_tool_for_an_ordinary_user(lab: Lab) -> None:
    for node, tool in zip(lab.nodes, ("amd-smi", "amd-smi", "rocm-smi", "rocm-smi"), strict=True):
        turn_to_amd(node, tool)

    run = examined(lab, *CODES, user=ADA)

    assert run.failed() == {}
    assert [v for v in run.report["verdicts"] if v["outcome"] == "unknown"] == []
    gpus = [system["gpus"] for system in run.report["systems"]]
    assert [(one["models"], one["driver"]) for one in gpus] == [({"AMD Instinct MI300X": 8}, "6.16.6")] * len(gpus)
    assert {system["topology"] for system in run.report["systems"]} == {"8 GPUs, XGMI all to all"}


def test_a_lost_gpu_bad_memory_and_a_tool_that_hangs_are_named(lab: Lab) -> None:
    for node in lab.nodes:
        turn_to_amd(node, "amd-smi", *((7, 1) if node is lab.nodes[1] else ()))
    counts = "/sys/bus/pci/drivers/amdgpu/0000:35:00.0/ras"
    lab.nodes[2].sh(f"printf 'ue: 2\\nce: 0\\n' >{counts}/umc_err_count")
    lab.nodes[3].write("/usr/local/bin/amd-smi", "#!/bin/sh\nexec sleep 1000\n", 0o755)

    run = examined(lab, *CODES, waits=("--connect-timeout", "10", "--command-timeout", "10", "--deadline", "60"))

    second, third, fourth = (node.name for node in lab.nodes[1:])
    assert run.failed() == {"NC501": {second}, "NC561": {second}, "NC560": {third}, "NC505": {fourth}}
    assert run.finding("NC561")["message"] == "1 of 8 AMD GPUs have no driver: 0000:15:00.0"
    assert run.finding("NC505")["summary"] == "amd-smi hangs"
    assert {"NC501", "NC502", "NC503", "NC504"} <= run.unknown(fourth)
