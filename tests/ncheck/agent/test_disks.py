"""The state of disks and RAID arrays, in trees made like those of sysfs, and the facts of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ncheck.agent.answers import disks
from ncheck.facts.disks import DISKS, DiskFacts, Heat, RaidArray, is_part
from ncheck.facts.learning import facts_of
from ncheck.model.evidence import Evidence, Reply, Status

Answered = Callable[[Mapping[Any, Reply]], Evidence]


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(disks, "NVME", str(tmp_path / "nvme"))
    monkeypatch.setattr(disks, "BLOCKS", str(tmp_path / "block"))
    return tmp_path


def laid(system: Path, files: Mapping[str, object]) -> None:
    for path, text in files.items():
        (system / path).parent.mkdir(parents=True, exist_ok=True)
        (system / path).write_text(f"{text}\n")


def test_states_are_read_and_only_a_drive_that_is_too_hot_says_how_hot(system: Path, answered: Answered) -> None:
    laid(system, {
        "nvme/nvme0/state": "live", "nvme/nvme0/hwmon3/temp1_alarm": 0, "nvme/nvme0/hwmon3/temp1_input": 41850,
        "nvme/nvme1/state": "live", "nvme/nvme1/hwmon4/temp1_alarm": 1, "nvme/nvme1/hwmon4/temp1_input": 84850,
        "nvme/nvme1/hwmon4/temp1_crit": 81850, "nvme/nvme2/state": "dead", "nvme/nvme2/hwmon5/temp1_alarm": 1,
        "nvme/nvme3/state": "live", "nvme/nvme3/device/hwmon/hwmon6/temp1_alarm": 1,
        "block/sda/device/state": "running", "block/sdb/device/state": "offline", "block/sdb/removable": 0,
        "block/sdc/device/state": "offline", "block/sdc/removable": 1, "block/sr0/device/state": "offline",
        "block/md0/md/level": "raid1", "block/md0/md/array_state": "active", "block/md0/md/sync_action": "recover",
        "block/md0/md/degraded": 1, "block/md1/md/level": "raid0", "block/md1/md/array_state": "clean",
    })  # fmt: skip
    answer = disks.answer(None, None, 1.0)
    assert facts_of(answered({DISKS: Reply(Status.OK, value=answer)}), [DiskFacts])[DiskFacts] == DiskFacts(
        {"nvme0": "live", "nvme1": "live", "nvme2": "dead", "nvme3": "live", "sda": "running", "sdb": "offline"},
        {"nvme1": Heat(84, 81), "nvme3": Heat()},
        {"md0": RaidArray("raid1", "active", "recover", 1), "md1": RaidArray("raid0", "clean", "")},
    )


def test_a_path_that_does_not_run_is_told_from_a_disk_by_its_holder(system: Path) -> None:
    for disk, state, holder in (
        ("sda", "running", "dm-0"), ("sdb", "offline", "dm-0"), ("sdc", "offline", "dm-1"), ("sdd", "blocked", "dm-1"),
        ("sde", "offline", "dm-2"), ("sdf", "running", "dm-2"), ("sdg", "offline", ""),
    ):  # fmt: skip
        laid(system, {f"block/{disk}/device/state": state})
        if holder:
            laid(system, {f"block/{holder}/dm/uuid": "LVM-7c" if holder == "dm-2" else "mpath-36001405"})
            for place, other in ((f"{disk}/holders", holder), (f"{holder}/slaves", disk)):
                (system / "block" / place).mkdir(exist_ok=True)
                (system / "block" / place / other).symlink_to(system / "block" / other)
    assert disks.answer(None, None, 1.0)["paths"] == ["sdb"]  # dm-1 has lost all its paths, and dm-2 is a volume


def test_a_container_may_show_no_disk(system: Path) -> None:
    laid(system, {"block/loop0/size": 0})
    assert disks.answer(None, None, 1.0) == {"states": {}, "paths": [], "hot": {}, "arrays": {}}


def test_a_partition_is_part_of_its_disk_and_of_no_other() -> None:
    parts = ("nvme1", "nvme1n1", "nvme1n1p2", "nvme1c0n1", "nvme11n1", "nvme2")
    assert [is_part(part, "nvme1") for part in parts] == [True, True, True, True, False, False]
    assert [is_part(part, "sda") for part in ("sda", "sda1", "sdaa", "sdaa1")] == [True, True, False, False]
