"""NC561: an accelerator that amdgpu did not take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.pci import AMD, NVIDIA, PciDevice, PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.amd_gpu_without_driver import amd_gpu_without_driver

ACCELERATOR, DISPLAY = 0x1200, 0x0300


def device(number: int, driver: str, kind: int = ACCELERATOR, vendor: int = AMD) -> PciDevice:
    return PciDevice(f"0000:0{number}:00.0", kind, vendor, 0x74A1, driver)


def outcome(*devices: PciDevice) -> Outcome:
    judgement = judge([amd_gpu_without_driver], {"n1": {PciFacts: PciFacts(devices)}})
    return judgement.verdicts[0].outcome


def test_the_gpu_without_a_driver_is_named() -> None:
    devices = (device(1, "amdgpu"), device(2, ""), device(3, "amdgpu"))
    assert judge([amd_gpu_without_driver], {"n1": {PciFacts: PciFacts(devices)}}).findings == [
        Finding("NC561", "amd-gpu-without-driver", Severity.ERROR, ("n1",),
                "1 of 3 AMD GPUs have no driver: 0000:02:00.0", (), "sudo journalctl -k -g amdgpu", kind="look",
                summary="1 of 3 AMD GPUs have no driver"),
    ]  # fmt: skip


@pytest.mark.parametrize(("devices", "expected"), [
    ((device(1, "amdgpu"), device(2, "amdgpu")), Outcome.PASSED),
    ((device(1, "amdgpu"), device(2, "vfio-pci")), Outcome.PASSED),
    ((device(1, "amdgpu"), replace(device(2, ""), virtual=True)), Outcome.PASSED),
    ((device(1, "amdgpu"), device(2, "", DISPLAY)), Outcome.PASSED),
    ((device(1, "amdgpu", DISPLAY), device(2, "nvidia", DISPLAY, NVIDIA)), Outcome.SKIPPED),
    ((device(1, "", DISPLAY),), Outcome.SKIPPED),
    ((device(1, ""),), Outcome.SKIPPED),
    ((), Outcome.SKIPPED),
])  # fmt: skip
def test_it_is_silent_on_healthy_nodes_of_all_kinds(devices: tuple[PciDevice, ...], expected: Outcome) -> None:
    assert outcome(*devices) is expected


def test_gpus_that_amdgpu_drives_are_healthy() -> None:
    nodes: dict[str, Facts] = {"n1": {PciFacts: PciFacts((device(1, "amdgpu"), device(2, "amdgpu")))}}
    assert judge([amd_gpu_without_driver], nodes).findings == []
