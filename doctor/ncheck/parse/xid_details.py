"""What the rest of an Xid's line says: the part of the GPU, whether hardware or a program caused it, and what to do.

Three kinds of line say more than their number does: 144 to 150 (NVLink of Blackwell: unit, reason and status), 74
(NVLink of Hopper: seven registers), and 13 and 31 (the unit or engine that stopped, which tells a broken GPU from a
wrong program only where it returns). A line that no table below explains is left to its number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum

from ncheck.expression import expression
from ncheck.lazy_dataclass import dataclass
from ncheck.parse.xids import Action, xid


class XidCause(Enum):
    HARDWARE = "hardware"
    FIRMWARE = "firmware"
    SOFTWARE = "software"
    EITHER = "hardware or software"
    OTHER = "follows another error"
    PROGRAM = "a program"


@dataclass(frozen=True)
class Detail:
    """What a line says. `part`: "NVLink 14" or "GPC 8, TPC 5"; `cause`: who is to blame; `action`: what to do."""

    part: str
    cause: XidCause
    action: Action


# 144 to 150. Source of all rows: sheet "Xid 144-150 Decode" of NVIDIA's Xid catalogue of October 2025
# (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html), as leptonai/gpud has it in
# components/accelerator/nvidia/xid/catalog_generated.go. Its columns: unit; bits 20 to 25 of the first word; the second
# word; HW/SW; immediate action together with the one for who investigates.

# NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001 0x00000000 0x00000000)
_NVLINK5 = expression(
    r"\): 1(?:4[4-9]|50), (?P<unit>[A-Z_]{3,30}?)(?:_PIPE\d)? (?P<fatal>Fatal|Nonfatal) XC\d{1,2} i\d{1,2} "
    r"Link (?P<link>\d{1,3}) \(0x(?P<first>[0-9a-f]{8}) 0x(?P<status>[0-9a-f]{8})\b",
    re.IGNORECASE,
)


def _rows(
    unit: str, reasons: Sequence[int], statuses: Sequence[int], cause: XidCause, action: Action
) -> Mapping[tuple[str, int, int], tuple[XidCause, Action]]:
    return {(unit, reason, status): (cause, action) for reason in reasons for status in statuses}


_TOP = 0x80000000
_UNITS: Mapping[tuple[str, int, int], tuple[XidCause, Action]] = {
    **_rows("SAW_MVB", (0,), (0x1, 0x8), XidCause.HARDWARE, Action.SUPPORT),
    **_rows("SAW_MVB", (0,), (0x2, 0x10), XidCause.HARDWARE, Action.RESET),
    **_rows("SAW_MVB", (0,), (0x4, 0x20), XidCause.HARDWARE, Action.NOTHING),
    **_rows("RLW_CTRL", (0,), (_TOP,), XidCause.SOFTWARE, Action.SUPPORT),
    **_rows("RLW_REMAP", (0,), (0x1, 0x2, 0x4, 0x8, 0x10, 0x20, _TOP), XidCause.SOFTWARE, Action.SUPPORT),
    **_rows("RLW_REMAP", (0,), (0x40, 0x80), XidCause.HARDWARE, Action.RESET),
    **_rows("RLW_REMAP", (0,), (0x100, 0x200), XidCause.HARDWARE, Action.NOTHING),
    **_rows("RLW_RSPCOL", (0,), (0x1,), XidCause.HARDWARE, Action.NOTHING),
    **_rows("RLW_RSPCOL", (0,), (0x2,), XidCause.HARDWARE, Action.RESET),
    **_rows("RLW_RSPCOL", (0,), (_TOP,), XidCause.SOFTWARE, Action.SUPPORT),
    **_rows("RLW_RXPIPE", (0,), (0x1, 0x2, 0x4, _TOP), XidCause.SOFTWARE, Action.SUPPORT),
    **_rows("RLW_RXPIPE", (0,), (0x8,), XidCause.EITHER, Action.SUPPORT),
    **_rows("RLW_SRC_TRACK", (0,), (0x1, 0x10, 0x20), XidCause.HARDWARE, Action.RESET),
    **_rows("RLW_SRC_TRACK", (0,), (0x2,), XidCause.HARDWARE, Action.NOTHING),
    **_rows("RLW_SRC_TRACK", (0,), (0x4, 0x8), XidCause.EITHER, Action.NOTHING),
    **_rows("RLW_SRC_TRACK", (0,), (_TOP,), XidCause.SOFTWARE, Action.SUPPORT),
    **_rows("RLW_TAGSTATE", (0,), (0x1, 0x10000), XidCause.HARDWARE, Action.NOTHING),
    **_rows("RLW_TAGSTATE", (0,), (0x2, 0x20000, 0x100000), XidCause.HARDWARE, Action.RESET),
    **_rows("RLW_TAGSTATE", (0,), (_TOP,), XidCause.SOFTWARE, Action.SUPPORT),
    **{
        key: value
        for unit in ("TLW_CTRL", "TLW_RX", "TLW_TX")
        for key, value in {
            **_rows(unit, (0,), (0x1,), XidCause.HARDWARE, Action.NOTHING),
            **_rows(unit, (0,), (0x2,), XidCause.HARDWARE, Action.SUPPORT),
            **_rows(unit, (0,), (0x4,), XidCause.HARDWARE, Action.RESET),
            **_rows(unit, (0,), (_TOP,), XidCause.SOFTWARE, Action.SUPPORT),
        }.items()
    },
    **_rows("TREX", (0,), (0x1, _TOP), XidCause.SOFTWARE, Action.SUPPORT),
    **_rows("NVLPW_CTRL", (0,), (_TOP,), XidCause.SOFTWARE, Action.SUPPORT),
    **_rows("NVLPW", (0,), (_TOP,), XidCause.SOFTWARE, Action.SUPPORT),
    **_rows("NETIR", (0,), (0,), XidCause.EITHER, Action.RESET),
    **_rows("NETIR_INT", (0,), (0,), XidCause.EITHER, Action.RESET),
    **_rows("NETIR_BER_EVENT", (0,), (0, 1, 2, 3), XidCause.HARDWARE, Action.CABLES),
    **{
        key: value
        for unit in ("NETIR_LINK_EVT", "NETIR_LINK_DOWN")
        for key, value in {
            **_rows(unit, (0, 1), (0,), XidCause.EITHER, Action.RESET),
            **_rows(unit, (2,), (0,), XidCause.EITHER, Action.LINK),
            **_rows(unit, (4, 10), (0,), XidCause.HARDWARE, Action.LINK),
            **_rows(unit, (15, 17, 22), (0,), XidCause.SOFTWARE, Action.RESET),
            **_rows(unit, (16, 18), (0,), XidCause.SOFTWARE, Action.LINK),
            **_rows(unit, (21, 32, 33, 34, 36, 37), (0,), XidCause.EITHER, Action.PEER),
            **_rows(unit, (35,), (0,), XidCause.HARDWARE, Action.PEER),
            **_rows(unit, (38,), (0,), XidCause.EITHER, Action.SUPPORT),
            **_rows(unit, (40,), (0,), XidCause.SOFTWARE, Action.SUPPORT),
            **_rows(unit, (42, 43), (0,), XidCause.HARDWARE, Action.SEAT),
        }.items()
    },
    **_rows("NETIR_MFDE_EVENT", (0,), (0x1, 0x4, 0x5, 0x7), XidCause.EITHER, Action.RESET),
    **_rows("NETIR_MFDE_EVENT", (0,), (0x3,), XidCause.EITHER, Action.NOTHING),
    **_rows("MSE_WATCHDOG", (0,), (0,), XidCause.FIRMWARE, Action.RESET),
}

# RLW_RXPIPE's first three are "Non-fatal*" in the table: where the line says Fatal, the second action is a reset.
_ELSE_RESET = frozenset(("RLW_RXPIPE", 0, status) for status in (0x1, 0x2, 0x4))


def of_nvlink5(line: str) -> Detail | None:
    """Return what a line of 144 to 150 says; None where the table does not have its unit, reason and status."""
    found = _NVLINK5.search(line)
    if found is None:
        return None
    key = (found["unit"].upper(), int(found["first"], 16) >> 20 & 0x3F, int(found["status"], 16))
    if key not in _UNITS:
        return None
    cause, action = _UNITS[key]
    if key in _ELSE_RESET and found["fatal"].lower() == "fatal":
        action = Action.RESET
    return Detail(f"NVLink {int(found['link'])}", cause, action)


# 74. Source of all rows: WORKFLOW_NVLINK_ERR of NVIDIA's Xid catalogue, which is for Hopper alone, as NVIDIA/NVSentinel
# quotes it in its document about that workflow. By the register (the first is 0) and the bit: the cause; what to do;
# and from how many times on the same link on it goes to the vendor, 0 for never.

# NVRM: Xid (PCI:0003:00:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 14(0x0, 0x0,
# 0x10000, 0x0, 0x0, 0x0, 0x0)
_NVLINK4 = expression(
    r"\): 74, .{0,120}NVLink: fatal error detected on link (?P<link>\d{1,3}) ?\("
    r"(?P<registers>0x[0-9a-f]{1,8}(?:, ?0x[0-9a-f]{1,8}){6})\)",
    re.IGNORECASE,
)


def _bits(
    register: int, bits: Sequence[int], cause: XidCause, action: Action, times: int = 0
) -> Mapping[tuple[int, int], tuple[XidCause, Action, int]]:
    return {(register, bit): (cause, action, times) for bit in bits}


_REGISTERS: Mapping[tuple[int, int], tuple[XidCause, Action, int]] = {
    **_bits(0, (0, 23, 30), XidCause.HARDWARE, Action.NOTHING),
    **_bits(0, (1, 20), XidCause.OTHER, Action.LINK),
    **_bits(0, (4, 5), XidCause.HARDWARE, Action.LINK, 3),  # ECC or parity
    **_bits(0, (8, 9, 12, 16, 17, 24, 28), XidCause.HARDWARE, Action.SEAT),
    **_bits(0, (21, 22), XidCause.HARDWARE, Action.SEAT),  # a weak signal
    **_bits(0, (27, 29), XidCause.EITHER, Action.LINK, 2),
    **_bits(2, (0, 1, 2, 6), XidCause.HARDWARE, Action.LINK, 3),  # ECC or parity
    **_bits(2, (13,), XidCause.EITHER, Action.VENDOR),
    **_bits(2, (16, 17, 18, 19), XidCause.EITHER, Action.LINK, 2),
    **_bits(3, (16, 17, 18), XidCause.OTHER, Action.LINK),
    **_bits(4, (18, 19, 21, 22, 24, 25, 27, 28), XidCause.HARDWARE, Action.LINK, 3),  # ECC or parity
    **_bits(4, (20, 23, 26, 29), XidCause.HARDWARE, Action.NOTHING),  # corrected errors, above a threshold
}

_HOPPER = expression(r"\b(?:H100|H200|H800|H20|GH200)\b")


def is_hopper(name: str) -> bool:
    """Return whether a GPU's name, such as "NVIDIA H100 80GB HBM3", is that of a Hopper."""
    return _HOPPER.search(name) is not None


def of_nvlink4(lines: Sequence[str]) -> list[Detail | None]:
    """Return what each Xid 74 of one Hopper says; None where it has no registers, or a bit that the table lacks.

    The same bit on the same link counts over all lines: what returns goes to the vendor.
    """
    found = [_links_bits(line) for line in lines]
    counts: dict[tuple[int, tuple[int, int]], int] = {}
    for link, bits in filter(None, found):
        for bit in bits:
            counts[link, bit] = counts.get((link, bit), 0) + 1
    return [None if one is None else _gravest(*one, counts) for one in found]


def _links_bits(line: str) -> tuple[int, tuple[tuple[int, int], ...]] | None:
    found = _NVLINK4.search(line)
    if found is None:
        return None
    values = [int(value, 16) for value in found["registers"].split(",")]
    bits = tuple((at, bit) for at, value in enumerate(values) for bit in range(32) if value >> bit & 1)
    return (int(found["link"]), bits) if bits and set(bits) <= _REGISTERS.keys() else None


# The later says more.
_ORDER = (Action.NOTHING, Action.LINK, Action.SEAT, Action.VENDOR)


def _gravest(link: int, bits: Sequence[tuple[int, int]], counts: Mapping[tuple[int, tuple[int, int]], int]) -> Detail:
    details = []
    for bit in bits:
        cause, action, times = _REGISTERS[bit]
        repeated = times and counts[link, bit] >= times
        details.append(Detail(f"NVLink {link}", cause, Action.VENDOR if repeated else action))
    return max(details, key=lambda one: (_ORDER.index(one.action), one.cause is not XidCause.OTHER))


# 13 and 31. Source: WORKFLOW_XID_13 and WORKFLOW_XID_31 of NVIDIA's Xid catalogue, as NVIDIA/NVSentinel quotes them in
# docs/designs about these workflows: the same GPC and TPC again, or memory faults of one GPU again, within 24 hours may
# be hardware: test it; on several GPUs, or once: the program.

# NVRM: Xid (PCI:0000:38:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 8, TPC 5, SM 1)
_SM = expression(r"\): 13, .{0,160}\(GPC (\d{1,2}), TPC (\d{1,2}), SM \d{1,2}\)")

# NVRM: Xid (PCI:0000:b5:00): 31, pid=2079991, name=pt_main_thread, Ch 00000007, intr 00000000. MMU Fault: ENGINE
# GRAPHICS GPCCLIENT_T1_6 faulted @ 0x7f5a_e7504000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ
_ENGINE = expression(r"\): 31, .{0,160}MMU Fault: ENGINE ([A-Z]{1,12}\d{0,2})\b")

_PID = expression(r"\bpid='?(\d{1,10})\b")
_DAY, _BURST = 86400.0, 60.0


def unit_of(line: str) -> str:
    """Return the unit or engine that a line of 13 or 31 names; "" where it names none."""
    if found := _SM.search(line):
        return f"GPC {found[1]}, TPC {found[2]}"
    found = _ENGINE.search(line)
    return f"engine {found[1]}" if found else ""


# NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
_NUMBER = expression(r"\bXid \([^)]{0,60}\): (\d{1,6})\b")


def advised(line: str) -> Action | None:
    """Return what to do after the Xid of one line, by its details where a table has them; None for another line."""
    if (found := _NUMBER.search(line)) is None:
        return None
    detail = of_nvlink5(line) or of_nvlink4([line])[0]
    return detail.action if detail else xid(int(found[1])).action


@dataclass(frozen=True)
class Stop:
    """One line of 13 or 31. `at`: in seconds, by the log's own clock; None where the line has no time."""

    gpu: str
    xid: int
    line: str
    at: float | None


_MOST = 300  # stops of programs that are compared, the last ones


def of_stopped_programs(stops: Sequence[Stop]) -> list[Detail | None]:
    """Return what each says: test the GPU where the same unit stopped another program within a day, else the program.

    Where the same number was reported for another GPU of the node within that day, it is the program that moves. None:
    the line names no unit.
    """
    read = [_Read(stop.gpu, stop.xid, unit_of(stop.line), _pid(stop.line), stop.at) for stop in stops]
    first = {(one.gpu, one.xid, one.unit, one.pid, (one.at or 0) // _BURST): one for one in reversed(read)}
    compared = list(reversed(first.values()))[-_MOST:]
    actions = {one: _action(one, compared) for one in dict.fromkeys(read) if one.unit}
    return [
        Detail(one.unit, XidCause.EITHER if actions[one] is Action.TEST else XidCause.PROGRAM, actions[one])
        if one.unit
        else None
        for one in read
    ]


@dataclass(frozen=True)
class _Read:
    gpu: str
    xid: int
    unit: str
    pid: str
    at: float | None


def _action(one: _Read, all_of_them: Sequence[_Read]) -> Action:
    near = [other for other in all_of_them if other.xid == one.xid and _within(one, other, _DAY)]
    again = any((other.gpu, other.unit) == (one.gpu, one.unit) and _of_two_programs(one, other) for other in near)
    return Action.TEST if again and all(other.gpu == one.gpu for other in near) else Action.RESTART


def _within(one: _Read, other: _Read, seconds: float) -> bool:
    return one.at is not None and other.at is not None and abs(one.at - other.at) <= seconds


def _of_two_programs(one: _Read, other: _Read) -> bool:
    """Return whether two lines are of two programs: one that is stopped prints several."""
    return one.pid != other.pid if one.pid and other.pid else not _within(one, other, _BURST)


def _pid(line: str) -> str:
    found = _PID.search(line)
    return found[1] if found else ""
