"""What the hardware has counted of errors: PCIe devices (AER) and memory controllers (EDAC). Root is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from ncheck.decode import OPTIONAL, Count, HowMany, Key, Maybe, Shown
from ncheck.expression import expression
from ncheck.facts.definition import Fact
from ncheck.facts.pci import AMD, NVIDIA, NVSWITCH, hexadecimal, pci_address, pci_class
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.fact import Unread

# CmpltTO, or dev_nonfatal_errs_bit[27]
_COUNTER = expression(r"\w{1,40}(?:\[\d{1,2}\])?")


def _counter(name: str) -> str:
    if not _COUNTER.fullmatch(name):
        raise ValueError("no counter of PCIe errors")
    return name


Counters = Mapping[Annotated[str, _counter], Count]


@dataclass(frozen=True)
class PcieErrors:
    """What one device has counted. `corrected`, `nonfatal` and `fatal`: how many errors of each sort, by the kernel's
    short names ("CmpltTO"), without those that are 0; the last two were not corrected. `kind` and `vendor` are as in
    PciDevice; a bridge is 0x0604.
    """

    kind: Annotated[int, Key("class"), pci_class]
    vendor: Annotated[int, hexadecimal]
    corrected: Maybe[Counters] = None
    nonfatal: Maybe[Counters] = None
    fatal: Maybe[Counters] = None

    @property
    def called(self) -> str:
        """What it is, for people; "" for what no job uses, such as the display of a management controller."""
        if self.kind == _DISPLAY and self.vendor not in _GPU_VENDORS:
            return ""
        if self.kind == NVSWITCH:
            return "NVSwitch" if self.vendor == NVIDIA else ""
        return _KINDS.get(self.kind) or _CLASSES.get(self.kind >> 8, "")

    @property
    def damage(self) -> Mapping[str, int]:
        """How many errors that mean damage, by their short names; none of a device that no job uses"""
        sums = {name: sum((counts or {}).get(name, 0) for counts in (self.nonfatal, self.fatal)) for name in DAMAGE}
        return {name: count for name, count in sums.items() if count} if self.called else {}


# By the kernel's short names. The others, such as UnsupReq and ACSViol, are requests that a device does not know or may
# not make: the search for devices makes them on healthy machines, too.
DAMAGE = {
    "DLP": "data link protocol error",
    "SDES": "link lost by surprise",
    "TLP": "poisoned data",
    "FCP": "flow control error",
    "CmpltTO": "request without an answer (completion timeout)",
    "RxOF": "receiver overflow",
    "MalfTLP": "malformed packet",
    "ECRC": "checksum error (ECRC)",
    "UncorrIntErr": "internal error",
    "PoisonTLPBlocked": "poisoned data that was blocked",
}


@dataclass(frozen=True)
class PcieErrorCounts:
    """GPUs, NICs, HCAs, NVMe drives, NVSwitches and the bridges above them. `read`: how many of them count errors;
    `devices`: those that have counted any, by address; `left_out`: how many were too many for one answer.
    """

    read: HowMany
    devices: Mapping[Annotated[str, pci_address], PcieErrors]
    left_out: Annotated[HowMany, OPTIONAL] = 0


@dataclass(frozen=True)
class MemoryModule:
    """A memory module with errors. `label`: as the board or the driver names it; `location`: "channel 0 slot 1".

    `uncorrected` and `corrected`: how many errors; None where the driver does not count them by module.
    """

    label: Shown
    location: Shown
    uncorrected: Maybe[Count] = None
    corrected: Maybe[Count] = None


@dataclass(frozen=True)
class MemoryErrorCounts:
    """What the memory controllers have counted since their EDAC driver was loaded. `controllers`: how many there are;
    `uncorrected` and `corrected`: how many errors, of them all; `modules`: those that have counted any.
    """

    controllers: HowMany
    uncorrected: Count
    corrected: Count
    modules: tuple[MemoryModule, ...]


@dataclass(frozen=True)
class HardwareErrorFacts:
    """`pcie`: None where no device counts errors; `memory`: None where no EDAC driver is loaded. Both are common in
    virtual machines.
    """

    pcie: PcieErrorCounts | None
    memory: MemoryErrorCounts | Unread | None


_DISPLAY, _NVME, _BRIDGE = 0x0300, 0x0108, 0x0604
_GPU_VENDORS = (NVIDIA, AMD)
_KINDS = {_NVME: "NVMe drive", _BRIDGE: "PCIe bridge"}
_CLASSES = {0x02: "network adapter", 0x03: "GPU", 0x12: "GPU"}

# What memory-errors-uncorrected explains: that the kernel has logged it, and errors that were corrected.
MEMORY_ERROR = "uncorrected memory error"
PCIE_ERROR = "uncorrected PCIe error"  # what pcie-errors-uncorrected explains: errors that were corrected

HARDWARE_ERRORS = Answer("hardware-errors", shape=HardwareErrorFacts)

FACTS = (Fact(HardwareErrorFacts, (HARDWARE_ERRORS,)),)
