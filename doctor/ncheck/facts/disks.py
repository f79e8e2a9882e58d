"""The state of disks and RAID arrays, as the kernel shows it to any user. SMART needs root, and is not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from ncheck.decode import OPTIONAL, Count, Device, Key, Maybe, Shown
from ncheck.expression import expression
from ncheck.facts.definition import Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer


def _celsius(thousandths: int) -> int:
    return thousandths // 1000


@dataclass(frozen=True)
class Heat:
    """`now` and `critical`: degrees Celsius, None where the drive does not say it."""

    now: Annotated[int, _celsius] | None = None
    critical: Annotated[int, _celsius] | None = None


@dataclass(frozen=True)
class RaidArray:
    """`level`: "raid1"; `state`: "clean", "active" and others; `action`: "recover" while a disk is filled, "idle".

    `degraded`: how many disks are missing; None where there is no redundancy, as in raid0.
    """

    level: Shown
    state: Annotated[Shown, Key("array_state")]
    action: Annotated[Shown, Key("sync_action")]
    degraded: Maybe[Count] = None


@dataclass(frozen=True)
class DiskFacts:
    """`states`: of each NVMe controller ("nvme0": "live") and each SCSI or SATA disk that is not removable ("sda":
    "running"). `hot`: drives that say that they are too hot. `arrays`: of Linux's own RAID, by name ("md0"). `paths`:
    those of the disks that do not run where another path leads to the same data (multipath).
    """

    states: Mapping[Device, Shown]
    hot: Mapping[Device, Heat]
    arrays: Mapping[Device, RaidArray]
    paths: Annotated[tuple[Device, ...], OPTIONAL] = ()


DISKS = Answer("disks", shape=DiskFacts)
LOST = ("dead", "offline", "transport-offline")  # states of a disk that answers nothing
UNHEALTHY_DISK = "unhealthy disk"  # what disk-unhealthy explains: that the kernel has logged errors of it

# n1, n1p2, c0n1 and c0n1p2 of nvme0; 1 of sda
_PART = expression(r"(?:(?:c\d{1,4})?n\d{1,4}(?:p\d{1,4})?|\d{1,4})?")


def is_part(device: str, disk: str) -> bool:
    """Return whether a block device is a disk, or one of its namespaces or partitions."""
    return device.startswith(disk) and bool(_PART.fullmatch(device[len(disk) :]))


FACTS = (Fact(DiskFacts, (DISKS,)),)
