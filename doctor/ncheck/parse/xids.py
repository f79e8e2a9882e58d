"""What the Xid numbers of NVIDIA's driver mean and what to do at once, by NVIDIA's Xid catalogue of October 2025.

https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, in own words. A number that is not here is one
that the catalogue calls unused or sends to NVIDIA's support.
"""

from __future__ import annotations

from enum import Enum

from ncheck.lazy_dataclass import dataclass


class Action(Enum):
    """What NVIDIA recommends to do at once."""

    RESET = "reset the GPU"
    REBOOT = "reboot the node"
    MEMORY = "stop the programs on it and reset the GPU; replace it if the error returns"
    LINK = "check its NVLinks (nvidia-smi nvlink -s), then reset the GPU"
    SEAT = "check the cables and seats of the NVLink, then reset the GPU"
    PEER = "look for the error at the other end of the NVLink, then reset the GPU"
    VENDOR = "reset the GPU and report it to the vendor"
    POWER = "check the power cables and the seat of the card"
    UPDATE = "update driver and firmware"
    CABLES = "check the cables and seats of the NVLink"
    TEST = "test the GPU (dcgmi diag -r 3)"
    RESTART = "restart the program"
    NOTHING = "nothing"
    SUPPORT = "report it to the vendor if it returns"


@dataclass(frozen=True)
class Xid:
    meaning: str
    action: Action


STOPPED, NVLINK4 = (13, 31), 74
OFF_THE_BUS, RECOVERY_CHANGED = 79, 154
NVLINK5 = range(144, 151)  # Blackwell's NVLink: the line says whether it is fatal


def _all(meaning: str, action: Action, *numbers: int) -> dict[int, Xid]:
    return dict.fromkeys(numbers, Xid(meaning, action))


XIDS: dict[int, Xid] = {
    **_all("the GPU stopped working on a program", Action.RESTART, 8),
    **_all("invalid or corrupted commands of a program", Action.RESTART, 11, 25, 32, 80),
    **_all("a program did what the GPU cannot do, such as a wrong address", Action.RESTART, 13, 69),
    **_all("a program used a memory address that it does not have", Action.RESTART, 31),
    **_all("an error of a copy engine", Action.RESTART, 39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136)),
    **_all("an error of a video or image unit", Action.RESTART, 60, 68, 82, 83, 84, 86, 88, *range(96, 106), 139),
    **_all("a program was ended because of an earlier error", Action.RESTART, 45),
    **_all("an uncorrectable memory error that was contained", Action.RESTART, 94),
    **_all("the GPU stopped responding", Action.RESET, 46),
    **_all("an uncorrectable (double bit) memory error", Action.MEMORY, 48),
    **_all("the auxiliary power is not connected", Action.POWER, 54),
    **_all("the power management controller of the GPU halted", Action.RESET, 62),
    **_all("a bad memory row or page could not be replaced", Action.RESET, 64),
    **_all("an error of an NVLink", Action.LINK, 74),
    **_all("a vGPU did not start", Action.UPDATE, 78),
    **_all("the GPU has fallen off the bus", Action.REBOOT, OFF_THE_BUS),
    **_all("an uncorrectable memory error that was not contained", Action.RESET, 95),
    **_all("a context switch timed out", Action.RESET, 109),
    **_all("a security fault", Action.RESET, 110),
    **_all("the GPU's system processor (GSP) does not answer", Action.RESET, 119),
    **_all("an error of the GPU's system processor (GSP)", Action.RESET, 120),
    **_all("the training of an NVLink failed", Action.RESET, 136),
    **_all("an uncorrectable memory error", Action.RESET, 140),
    **_all("the GPU could not be initialized", Action.RESET, 143),
    **_all("an error of an NVLink", Action.LINK, *NVLINK5),
    **_all("an error of key rotation", Action.SUPPORT, 151),
    **_all("the driver changed what it asks for", Action.SUPPORT, RECOVERY_CHANGED),
    **_all("an error of NVLink's software", Action.RESET, 155),
    **_all("a part of the GPU was retired", Action.RESET, 156),
    **_all("a part of the GPU could not be retired", Action.SUPPORT, 157),
    **_all("a fatal timeout", Action.RESET, 158),
    **_all("needs no action", Action.NOTHING, 14, 37, 38, 43, 44, 63, 66, 67, 92, 93, 106, 107, 108, 121, 137, 141, 152,
           153, 160, 161),
}  # fmt: skip

BROKEN = (
    Action.RESET, Action.REBOOT, Action.MEMORY, Action.LINK, Action.SEAT, Action.PEER, Action.VENDOR,
)  # fmt: skip

# The GPU needs a reset, the machine a reboot, or a link or memory a check before a job can use it.
FATAL = frozenset(number for number, xid in XIDS.items() if xid.action in BROKEN)

# NVIDIA says that no action is needed.
HARMLESS = frozenset(number for number, xid in XIDS.items() if xid.action is Action.NOTHING)


def xid(number: int) -> Xid:
    """Return what a number means."""
    return XIDS.get(number, Xid("not explained by NVIDIA's catalogue", Action.SUPPORT))
