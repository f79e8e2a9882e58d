"""What the kernel has logged since boot of hardware that fails: processors, memory, PCIe devices and HCAs.

Corrected errors are left out: healthy machines log them, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from ncheck.expression import expression
from ncheck.facts.definition import Fact
from ncheck.facts.kernel_log import DMESG, JOURNAL, Trouble, kernel_log, troubles
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Evidence
from ncheck.model.fact import Absent, Read, Unread
from ncheck.parse.kernel_lines import (
    EDAC_UNCORRECTED,
    HARD_LOCKUP,
    HCA_SICK,
    HCA_TIMEOUT,
    PCIE_UNCORRECTED,
    RCU_STALL,
    SOFT_LOCKUP,
)


@dataclass(frozen=True)
class HardwareLogFacts:
    """`uncorrected`: errors that the hardware could not correct, of "memory", "a processor" or "the hardware".

    `earlier`: those that the firmware has kept from before this boot. `storms`: floods of corrected errors. `lockups`:
    CPUs that hung, by kind ("soft lockup"). `adapters`: HCAs of which the driver reports trouble, and `pcie`: devices
    with fatal PCIe errors, both by PCI address.
    """

    uncorrected: tuple[Trouble, ...] = ()
    earlier: tuple[Trouble, ...] = ()
    storms: tuple[Trouble, ...] = ()
    lockups: tuple[Trouble, ...] = ()
    adapters: tuple[Trouble, ...] = ()
    pcie: tuple[Trouble, ...] = ()


MEMORY, PROCESSOR, HARDWARE, CORRECTED = "memory", "a processor", "the hardware", "corrected errors"
HCA_TROUBLE = "trouble of an HCA"  # what hca-trouble-reported explains: that its PCIe device has counted errors

# mce: [Hardware Error]: CPU 24: Machine Check Exception: 5 Bank 7: bd80000000100134
# EDAC skx MC3: CPU 0: Machine Check Event: 0x0 Bank 25: 0xac00000200a00090
_MACHINE_CHECK = expression(
    r"CPU \d{1,5}: Machine Check(?: Exception| Event)?: (?:0x)?[0-9a-f]{1,16} Bank \d{1,4}: "
    r"(?:0x)?(?P<status>[0-9a-f]{16})\b"
)
_UNCORRECTED = 1 << 61  # this bit of the status, of Intel and AMD
_OF_MEMORY, _MEMORY_CONTROLLER = 0xEF80, 0x0080  # bits of Intel's codes: 000F 0000 1MMM CCCC

# [Hardware Error]: CPU:2 (19:1:1) MC17_STATUS[Over|UE|MiscV|AddrV|-|TCC|SyndV|UECC|-|Poison|-]: 0xfc2040000400011b
_MACHINE_CHECK_OF_AMD = expression(r"\[Hardware Error\]: CPU:\d{1,5} .{1,40}_STATUS\[[^|\]]{1,8}\|UE\|")

# Memory failure: 0x7e025e: recovery action for dirty LRU page: Recovered
_MEMORY_LOST = expression(rf"{EDAC_UNCORRECTED}|Memory failure: 0x[0-9a-f]{{1,16}}: recovery action for")

# {1}[Hardware Error]:  Error 0, type: recoverable          | The firmware reports; of the boot before, without {1}.
# {1}[Hardware Error]:   section_type: memory error
_SECTION = expression(
    r"(?P<source>(?:\{\d{1,9}\})?)\[Hardware Error\]: +(?:"
    r"Error \d{1,3}, type: (?P<grade>\w{1,20})|section[_ ]type: (?P<of>\w.{0,60}))"
)

_STORM = expression(r"CMCI storm detected")
_LOCKUPS = {
    "soft lockup": expression(SOFT_LOCKUP),
    "hard lockup": expression(HARD_LOCKUP),
    "RCU stall": expression(RCU_STALL),
}

_ADDRESS = r"(?P<of>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_HCA = expression(rf"mlx5_core {_ADDRESS}[ :].{{0,80}}?(?:{HCA_SICK}|.{{1,60}}{HCA_TIMEOUT})")
_PCIE = expression(rf"{_ADDRESS}: (?:AER: )?{PCIE_UNCORRECTED} \(Fatal\)")


def hardware_log(evidence: Evidence) -> Read[HardwareLogFacts]:
    """Read the first log that shows kernel messages."""
    log = kernel_log(evidence)
    return log if isinstance(log, (Unread, Absent)) else read_lines(log.lines)


def read_lines(lines: Iterable[str]) -> HardwareLogFacts:
    """Return what the lines say, by what they are about."""
    uncorrected: dict[str, list[str]] = {}
    earlier: dict[str, list[str]] = {}
    storms: dict[str, list[str]] = {}
    lockups: dict[str, list[str]] = {}
    adapters: dict[str, list[str]] = {}
    pcie: dict[str, list[str]] = {}
    grades: dict[str, str] = {}  # by source, until the section is named
    for line in lines:
        if found := _SECTION.search(line):
            source = found["source"]
            if found["grade"]:
                grades[source] = found["grade"]
            elif grades.pop(source, "") in ("fatal", "recoverable") and (of := _section(found["of"], source)):
                (uncorrected if source else earlier).setdefault(of, []).append(line)
        elif of := _machine_check(line):
            uncorrected.setdefault(of, []).append(line)
        elif _STORM.search(line):
            storms.setdefault(CORRECTED, []).append(line)
        elif of := next((kind for kind, pattern in _LOCKUPS.items() if pattern.search(line)), ""):
            lockups.setdefault(of, []).append(line)
        elif found := _HCA.search(line):
            adapters.setdefault(found["of"], []).append(line)
        elif found := _PCIE.search(line):
            pcie.setdefault(found["of"], []).append(line)
    return HardwareLogFacts(*map(troubles, (uncorrected, earlier, storms, lockups, adapters, pcie)))


def _machine_check(line: str) -> str:
    """Return what an uncorrected error is of; "" for a line that reports none."""
    if found := _MACHINE_CHECK.search(line):
        status = int(found["status"], 16)
        if not status & _UNCORRECTED:
            return ""
        return MEMORY if status & _OF_MEMORY == _MEMORY_CONTROLLER else PROCESSOR
    if _MEMORY_LOST.search(line):
        return MEMORY
    return PROCESSOR if _MACHINE_CHECK_OF_AMD.search(line) else ""


def _section(name: str, source: str) -> str:
    """Return what a section is about. While the kernel runs, its counters of PCIe errors say more of those."""
    if name.startswith("PCIe") and source:
        return ""
    if name.startswith("memory"):
        return MEMORY
    return PROCESSOR if "processor" in name else HARDWARE


FACTS = (Fact(HardwareLogFacts, (JOURNAL, DMESG), hardware_log),)
