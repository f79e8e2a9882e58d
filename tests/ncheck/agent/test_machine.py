"""The machine as the agent reads it, in trees made like those of /sys and /proc."""

from __future__ import annotations

from pathlib import Path

import pytest
from ncheck.agent.answers import machine
from ncheck.agent.sources import Sources

EPYC = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9654  96-Core Processor\n\nprocessor\t: 1\n"


@pytest.fixture
def laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay two sockets of two cores with two threads each, in two NUMA nodes, and a third of memory alone."""
    for cpu in range(8):
        place = tmp_path / "cpu" / f"cpu{cpu}" / "topology"
        place.mkdir(parents=True)
        (place / "physical_package_id").write_text(f"{cpu // 2 % 2}\n")
        (place / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    for node, cpus in enumerate(("0-1,4-5\n", "2-3,6-7\n", "\n")):
        (tmp_path / "node" / f"node{node}").mkdir(parents=True)
        (tmp_path / "node" / f"node{node}" / "cpulist").write_text(cpus)
    (tmp_path / "dmi").mkdir()
    (tmp_path / "dmi" / "sys_vendor").write_text("Dell Inc.\n")
    (tmp_path / "dmi" / "bios_version").write_text("2.1\n")
    for drive, transport in {"nvme0": "pcie\n", "nvme1": "rdma\n", "nvme12": "pcie\n"}.items():
        (tmp_path / "nvme" / drive).mkdir(parents=True)
        (tmp_path / "nvme" / drive / "transport").write_text(transport)
    (tmp_path / "cpuinfo").write_text(EPYC)
    (tmp_path / "meminfo").write_text("MemTotal:       1584786772 kB\nMemFree:  7 kB\n")
    monkeypatch.setattr(machine, "CPUS", str(tmp_path / "cpu" / "cpu[0-9]*" / "topology"))
    monkeypatch.setattr(machine, "NODES", str(tmp_path / "node" / "node[0-9]*" / "cpulist"))
    monkeypatch.setattr(machine, "TOOLKIT", (str(tmp_path / "lib" / "*-linux-gnu" / "libnvidia-container.so.1"),))
    monkeypatch.setattr(machine, "SYSTEM_FOLDERS", str(tmp_path))
    monkeypatch.setattr(machine, "NVME", str(tmp_path / "nvme" / "nvme[0-9]*"))
    files = {"DMI": "dmi", "CPUINFO": "cpuinfo", "MEMINFO": "meminfo", "CONTAINER": "containerenv", "INIT": "environ"}
    for name, path in files.items():
        monkeypatch.setattr(machine, name, str(tmp_path / path))
    return tmp_path


def answer(**environment: str) -> dict[str, object]:
    found: dict[str, object] = machine.answer(Sources(environment), None, 1.0)
    return found


def test_processors_memory_and_model_are_read(laid: Path) -> None:
    found = answer()
    assert (laid / "cpuinfo").exists()
    del found["kernel"], found["architecture"]
    assert found == {
        "cpu": "AMD EPYC 9654 96-Core Processor", "sockets": 2, "cores": 4, "threads": 8, "numa_nodes": 2,
        "memory": 1584786772 * 1024, "vendor": "Dell Inc.", "product": None, "image": None,
        "bios": "2.1", "nvme_drives": 2, "container_toolkit": "",
    }  # fmt: skip


def test_a_processor_without_a_model_in_cpuinfo_is_known_by_lscpu(laid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (laid / "cpuinfo").write_text("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n")
    (laid / "lscpu").write_text("#!/bin/sh\necho 'Architecture:    aarch64'\necho 'Model name:    Neoverse-V2'\n")
    (laid / "lscpu").chmod(0o755)
    monkeypatch.setenv("PATH", str(laid), prepend=":")
    assert answer()["cpu"] == "Neoverse-V2"


def test_what_a_container_hides_is_null(tmp_path: Path, laid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CPUS", "NODES", "CPUINFO", "MEMINFO", "DMI", "CLASSES"):
        monkeypatch.setattr(machine, name, str(tmp_path / "hidden"))
    (laid / "lscpu").write_text("#!/bin/sh\nexit 1\n")
    (laid / "lscpu").chmod(0o755)
    monkeypatch.setenv("PATH", str(laid), prepend=":")
    found = answer()
    assert {name for name, value in found.items() if value is not None} == {
        "kernel", "architecture", "container_toolkit",
    }  # fmt: skip


def test_the_image_is_named_without_the_users_folders(laid: Path) -> None:
    assert answer(APPTAINER_CONTAINER="/home/ann/images/torch-2.5.sif")["image"] == "torch-2.5.sif"
    (laid / "containerenv").write_text('engine="podman-4.9.3"\nname="train"\nimage="docker.io/rocm/pytorch:latest"\n')
    assert answer()["image"] == "docker.io/rocm/pytorch:latest"


def test_an_image_made_from_nvidias_says_so_to_a_login_that_lacks_its_variables(laid: Path) -> None:
    (laid / "environ").write_text("PATH=/bin\0NVIDIA_PYTORCH_VERSION=24.03\0NVIDIA_BUILD_ID=85286408\0")
    assert answer()["image"] == "made from NVIDIA's PyTorch 24.03 (build 85286408)"
    assert answer(SINGULARITY_CONTAINER="/images/own.sif")["image"] == "own.sif"


def test_the_container_toolkit_has_the_release_of_its_library(laid: Path) -> None:
    (laid / "nvidia-ctk").write_text("#!/bin/sh\nexit 1\n")
    (laid / "nvidia-ctk").chmod(0o755)
    assert answer()["container_toolkit"] == "installed"
    folder = laid / "lib" / "x86_64-linux-gnu"
    folder.mkdir(parents=True)
    (folder / "libnvidia-container.so.1.16.2").write_bytes(b"")
    (folder / "libnvidia-container.so.1").symlink_to("libnvidia-container.so.1.16.2")
    assert answer()["container_toolkit"] == "1.16.2"
