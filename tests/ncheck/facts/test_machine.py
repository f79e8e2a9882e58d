"""The machine as the agent reads it, in trees made like those of /sys and /proc, and the fact of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import machine
from ncheck.agent.sources import Sources
from ncheck.facts.learning import facts_of
from ncheck.facts.machine import MACHINE, MachineFacts
from ncheck.model.evidence import Evidence, JsonValue, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]
Found = Callable[..., MachineFacts]

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
    files = {"DMI": "dmi", "CPUINFO": "cpuinfo", "MEMINFO": "meminfo", "CONTAINER": "containerenv", "PROC": "proc"}
    for name, path in files.items():
        monkeypatch.setattr(machine, name, str(tmp_path / path))
    return tmp_path


@pytest.fixture
def found(answered: Answered) -> Found:
    """Return a function from an environment to the fact of what the agent answers in it."""

    def fact(**environment: str) -> MachineFacts:
        value = machine.answer(Sources(environment), None, 1.0)
        facts = facts_of(answered({MACHINE: Reply(Status.OK, value=value)}), [MachineFacts])[MachineFacts]
        assert isinstance(facts, MachineFacts), facts
        return replace(facts, kernel="6.8.0", architecture="aarch64")  # of the machine that runs this

    return fact


def test_processors_memory_and_model_are_read(laid: Path, found: Found) -> None:
    (laid / "dmi" / "product_name").write_text("DGXH100\n")
    (laid / "containerenv").write_text('engine="podman-4.9.3"\nname="train"\nimage="reg.corp:5000/a/b:1"\n')
    fact = found()
    assert fact == MachineFacts(
        "6.8.0", "aarch64", "AMD EPYC 9654 96-Core Processor", 2, 4, 8, 2, 1584786772 * 1024, "Dell Inc. DGXH100",
        "a/b:1", "2.1", 2, "",
    )  # fmt: skip
    assert fact.vendor == "Dell Inc."


def test_a_processor_without_a_model_in_cpuinfo_is_known_by_lscpu(
    laid: Path, monkeypatch: pytest.MonkeyPatch, found: Found
) -> None:
    (laid / "cpuinfo").write_text("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n")
    (laid / "lscpu").write_text("#!/bin/sh\necho 'Architecture:    aarch64'\necho 'Model name:    Neoverse-V2'\n")
    (laid / "lscpu").chmod(0o755)
    monkeypatch.setenv("PATH", str(laid), prepend=":")
    assert found().cpu == "Neoverse-V2"


def test_what_a_container_hides_is_not_known(
    tmp_path: Path, laid: Path, monkeypatch: pytest.MonkeyPatch, found: Found
) -> None:
    for name in ("CPUS", "NODES", "CPUINFO", "MEMINFO", "DMI", "CLASSES"):
        monkeypatch.setattr(machine, name, str(tmp_path / "hidden"))
    (laid / "lscpu").write_text("#!/bin/sh\nexit 1\n")
    (laid / "lscpu").chmod(0o755)
    monkeypatch.setenv("PATH", str(laid), prepend=":")
    fact = found()
    assert (fact, fact.vendor) == (MachineFacts("6.8.0", "aarch64", container_toolkit=""), "")


def test_the_image_is_named_without_the_users_folders(laid: Path, found: Found) -> None:
    assert found(APPTAINER_CONTAINER="/home/ann/images/torch-2.5.sif").image == "torch-2.5.sif"
    (laid / "containerenv").write_text('engine="podman-4.9.3"\nname="train"\nimage="docker.io/rocm/pytorch:latest"\n')
    assert found().image == "rocm/pytorch:latest"


def test_an_image_made_from_nvidias_says_so_to_a_login_that_lacks_its_variables(laid: Path, found: Found) -> None:
    (laid / "proc" / "1").mkdir(parents=True)
    (laid / "proc" / "1" / "environ").write_text("PATH=/bin\0NVIDIA_PYTORCH_VERSION=24.03\0NVIDIA_BUILD_ID=85286408\0")
    assert found().image == "made from NVIDIA's PyTorch 24.03 (build 85286408)"
    assert found(SINGULARITY_CONTAINER="/images/own.sif").image == "own.sif"


def test_the_container_toolkit_has_the_release_of_its_library(laid: Path, found: Found) -> None:
    (laid / "nvidia-ctk").write_text("#!/bin/sh\nexit 1\n")
    (laid / "nvidia-ctk").chmod(0o755)
    assert found().container_toolkit == "installed"
    folder = laid / "lib" / "x86_64-linux-gnu"
    folder.mkdir(parents=True)
    (folder / "libnvidia-container.so.1.16.2").write_bytes(b"")
    (folder / "libnvidia-container.so.1").symlink_to("libnvidia-container.so.1.16.2")
    assert found().container_toolkit == "1.16.2"


def read(answered: Answered, **said: JsonValue) -> object:
    value: JsonValue = {"kernel": "6.8.0", "architecture": "aarch64", **said}
    return facts_of(answered({MACHINE: Reply(Status.OK, value=value)}), [MachineFacts])[MachineFacts]


@pytest.mark.parametrize(
    ("vendor", "product", "shown"),
    [
        (None, None, ""),
        ("To Be Filled By O.E.M.", "To Be Filled By O.E.M.", ""),
        ("ASUS", "System Product Name", "ASUS"),
        ("HPE", "HPE Cray XD670", "HPE Cray XD670"),
    ],
)
def test_what_the_manufacturer_did_not_write_is_left_out(
    answered: Answered, vendor: str | None, product: str | None, shown: str
) -> None:
    facts = read(answered, vendor=vendor, product=product)
    assert facts == MachineFacts("6.8.0", "aarch64", product=shown)


def test_a_long_release_of_the_container_toolkit_is_cut_and_that_of_the_firmware_has_no_blank(
    answered: Answered,
) -> None:
    assert read(answered, bios=" 2.1") == MachineFacts("6.8.0", "aarch64", bios="2.1")
    assert read(answered, container_toolkit="1" * 5000) == MachineFacts("6.8.0", "aarch64", container_toolkit="1" * 400)


@pytest.mark.parametrize("image", ["rocm/pytorch:latest", "localhost/rocm/pytorch:latest"])
def test_an_image_has_no_name_of_a_host(answered: Answered, image: str) -> None:
    assert read(answered, image=image) == MachineFacts("6.8.0", "aarch64", image="rocm/pytorch:latest")


@pytest.mark.parametrize("wrong", [{"kernel": ""}, {"kernel": None}, {"cores": "96"}, {"memory": 1.5}, {"cpu": 7}])
def test_nonsense_is_unread(answered: Answered, wrong: dict[str, JsonValue]) -> None:
    assert isinstance(read(answered, **wrong), Unread)


def test_an_agent_that_does_not_say_it_is_unread(answered: Answered) -> None:
    assert isinstance(facts_of(answered({}), [MachineFacts])[MachineFacts], Unread)
