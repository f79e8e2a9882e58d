"""What PCIe devices and memory controllers have counted, in trees made like those of sysfs, and the facts of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import hardware_errors
from ncheck.facts.hardware_errors import (
    HARDWARE_ERRORS,
    HardwareErrorFacts,
    MemoryErrorCounts,
    MemoryModule,
    PcieErrorCounts,
    PcieErrors,
)
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, Reply, Status
from ncheck.model.fact import Unread

Answered = Callable[[Mapping[Any, Reply]], Evidence]

ROOT, PORT, GPU = "0000:3a:01.0", "0000:3a:01.0/0000:3b:00.0", "0000:3c:00.0"
FUNCTION, SATA = "0000:3d:00.1", "0000:00:17.0"


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hardware_errors, "DEVICES", str(tmp_path / "bus"))
    monkeypatch.setattr(hardware_errors, "MEMORY", str(tmp_path / "mc"))
    (tmp_path / "bus").mkdir()
    return tmp_path


def device(system: Path, place: str, kind: str, **counts: str) -> Path:
    """Lay a device beneath its bridges, with its files of counts."""
    real = system / "devices" / "pci0000:3a" / place
    real.mkdir(parents=True)
    files = {"class": kind, "vendor": "0x10de", **counts}
    for name, text in files.items():
        (real / name).write_text(f"{text}\n")
    (system / "bus" / real.name).symlink_to(real)
    return real


NO_UNCORRECTED = "Undefined 0\nDLP 0\nSDES 0\nTLP 0\nFCP 0\nCmpltTO 0\nUnsupReq 0\nACSViol 0\nTOTAL_ERR_FATAL 0"
NO_CORRECTED = "RxErr 0\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\nTOTAL_ERR_COR 0"
NONE = {"aer_dev_fatal": NO_UNCORRECTED, "aer_dev_nonfatal": NO_UNCORRECTED, "aer_dev_correctable": NO_CORRECTED}


def facts(answered: Answered) -> HardwareErrorFacts:
    answer = hardware_errors.answer(None, None, 1.0)
    every = facts_of(answered({HARDWARE_ERRORS: Reply(Status.OK, value=answer)}), [HardwareErrorFacts])
    fact = every[HardwareErrorFacts]
    assert isinstance(fact, HardwareErrorFacts), fact
    return fact


def test_what_a_job_uses_and_the_bridges_above_it_are_read_and_zeros_are_left_out(
    system: Path, answered: Answered
) -> None:
    device(system, ROOT, "0x060400", **{**NONE, "aer_dev_fatal": NO_UNCORRECTED.replace("SDES 0", "SDES 1")})
    device(system, PORT, "0x060400", **NONE)
    errors = {
        "aer_dev_nonfatal": NO_UNCORRECTED.replace("UnsupReq 0", "UnsupReq 7"),
        "aer_dev_correctable": "RxErr 12\nTOTAL_ERR_COR 12",
    }
    device(system, f"{PORT}/{GPU}", "0x030200", **{**NONE, **errors})
    virtual = device(system, f"{PORT}/{FUNCTION}", "0x020000", **{**NONE, "aer_dev_fatal": "DLP 3"})
    (virtual / "physfn").symlink_to(system)
    device(system, SATA, "0x010601", **{**NONE, "aer_dev_fatal": "DLP 3"})
    device(system, f"{PORT}/0000:3e:00.0", "0x010802")
    assert facts(answered) == HardwareErrorFacts(
        PcieErrorCounts(3, {
            "0000:3a:01.0": PcieErrors(0x0604, 0x10DE, {}, {}, {"SDES": 1}),
            GPU: PcieErrors(0x0302, 0x10DE, {"RxErr": 12}, {"UnsupReq": 7}, {}),
        }),
        None,
    )  # fmt: skip


def test_devices_too_many_for_one_answer_are_counted(
    system: Path, answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware_errors, "_MOST", 2)
    for number in range(5):
        device(system, f"0000:{number:02}:00.0", "0x010802", **NONE)
    assert facts(answered) == HardwareErrorFacts(PcieErrorCounts(2, {}, 3), None)
    monkeypatch.setattr(hardware_errors, "_MOST", 5)
    assert facts(answered) == HardwareErrorFacts(PcieErrorCounts(5, {}), None)


def test_only_the_display_of_a_management_controller_has_no_name() -> None:
    kinds = {0x0300: "GPU", 0x0302: "GPU", 0x1200: "GPU", 0x0207: "network adapter", 0x0108: "NVMe drive",
             0x0680: "NVSwitch", 0x0604: "PCIe bridge"}  # fmt: skip
    assert {kind: PcieErrors(kind, 0x10DE).called for kind in kinds} == kinds
    assert PcieErrors(0x0300, 0x1A03).called == ""


def controller(system: Path, name: str, **files: object) -> None:
    for path, text in files.items():
        place = system / "mc" / name / path.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")


def test_memory_is_counted_by_controller_and_modules_with_errors_are_named(system: Path, answered: Answered) -> None:
    for number in (0, 1):
        controller(system, f"mc{number}", ue_count=number, ce_count=3, dimm0__dimm_label="CPU_SrcID#0_DIMM#0",
                   dimm0__dimm_ue_count=0, dimm0__dimm_ce_count=0)  # fmt: skip
    controller(system, "mc1", dimm5__dimm_label="CPU_SrcID#1_DIMM#1", dimm5__dimm_location="channel 2 slot 1 ",
               dimm5__dimm_ue_count=1, dimm5__dimm_ce_count=3)  # fmt: skip
    controller(system, "mc0", rank7__dimm_ue_count=0, rank7__dimm_ce_count=3)
    assert facts(answered).memory == MemoryErrorCounts(2, 1, 6, (
        MemoryModule("CPU_SrcID#1_DIMM#1", "channel 2 slot 1", 1, 3), MemoryModule("mc0/rank7", "", 0, 3),
    ))  # fmt: skip


def test_old_kernels_count_by_row(system: Path, answered: Answered) -> None:
    controller(system, "mc0", ue_count=2, ce_count=0, csrow4__ue_count=2, csrow4__ce_count=0,
               csrow4__ch0_dimm_label="DIMM_B2", dimm0__dimm_label="DIMM_B2")  # fmt: skip
    assert facts(answered).memory == MemoryErrorCounts(1, 2, 0, (MemoryModule("DIMM_B2", "", 2, 0),))


def test_what_counts_nothing_is_not_a_count_of_zero(system: Path, answered: Answered) -> None:
    device(system, GPU, "0x030200")
    assert facts(answered) == HardwareErrorFacts(None, None)
    controller(system, "mc0", ce_count=0)
    assert isinstance(facts(answered).memory, Unread)
