"""The devices on the PCI bus that a job uses: GPUs and accelerators, NICs, InfiniBand adapters, NVSwitches."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from ncheck.decode import DeviceOrEmpty, Key
from ncheck.expression import expression
from ncheck.facts.answers import reading
from ncheck.facts.definition import Fact, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer

NVIDIA, AMD, MELLANOX, AMAZON = 0x10DE, 0x1002, 0x15B3, 0x1D0F
_NETWORK, _DISPLAY, _ACCELERATOR = 0x02, 0x03, 0x12
_EFA = 0xEFA  # the first digits of its numbers
INFINIBAND, NVSWITCH = 0x0207, 0x0680  # PciDevice.kind; 0x0680 of NVIDIA

# 0000:3b:00.0
_ADDRESS = expression(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

# pci0000:3a, or the address of a bridge
_ABOVE = expression(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}|" + _ADDRESS.pattern)

# 0-47,96-143
_CPUS = expression(r"[0-9,-]*")


def pci_address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError("no address on the PCI bus")
    return text


def hexadecimal(text: str) -> int:
    return int(text, 16)


def pci_class(text: str) -> int:
    return int(text, 16) >> 8


def _cpus(text: str) -> str:
    if not _CPUS.fullmatch(text):
        raise ValueError("no list of CPUs")
    return text


def _places(above: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(place for place in above if _ABOVE.fullmatch(place))


@dataclass(frozen=True)
class PciDevice:
    """One device. `kind` is the class without the programming interface: 0x0302 is a 3D controller, 0x0207
    InfiniBand. `vendor`: PCI's number, 0x10de is NVIDIA; `device`: the vendor's number.

    `driver` is "" where none is bound; `numa`: its NUMA node, None where the system does not know, as in most
    virtual machines. `above` are the bridges from the processor down: ("pci0000:15", "0000:15:01.0",
    "0000:16:00.0"). `virtual`: it is a virtual function.
    """

    address: Annotated[str, pci_address]
    kind: Annotated[int, Key("class"), pci_class]
    vendor: Annotated[int, hexadecimal]
    device: Annotated[int, hexadecimal]
    driver: DeviceOrEmpty = ""
    numa: int | None = None
    cpus: Annotated[str, _cpus] = ""
    above: Annotated[tuple[str, ...], _places] = ()
    virtual: bool = False

    @cached_property
    def bridges(self) -> frozenset[str]:
        """The bridges above it, without the root of the bus."""
        return frozenset(place for place in self.above if not place.startswith("pci"))


@dataclass(frozen=True)
class PciFacts:
    """The devices by address. `left_out`: how many were too many for one answer."""

    devices: tuple[PciDevice, ...]
    left_out: int = 0

    def gpus(self, vendor: int) -> tuple[PciDevice, ...]:
        """Return the GPUs and accelerators of a vendor, without virtual functions."""
        return tuple(
            one for one in self.devices
            if one.vendor == vendor and one.kind >> 8 in (_DISPLAY, _ACCELERATOR) and not one.virtual
        )  # fmt: skip

    @property
    def adapters(self) -> tuple[PciDevice, ...]:
        """The network and InfiniBand adapters, with virtual functions: in a virtual machine these are all there is."""
        return tuple(one for one in self.devices if one.kind >> 8 == _NETWORK)

    @property
    def infiniband(self) -> tuple[PciDevice, ...]:
        """The adapters that say they are InfiniBand; those of RoCE are Ethernet on PCI."""
        return tuple(one for one in self.devices if one.kind == INFINIBAND)

    @property
    def efa(self) -> tuple[PciDevice, ...]:
        """AWS's EFA adapters, 0xefa0 to 0xefa3 so far (the driver's table of PCI IDs)."""
        return tuple(one for one in self.devices if one.vendor == AMAZON and one.device >> 4 == _EFA)

    @property
    def nvswitches(self) -> tuple[PciDevice, ...]:
        """NVIDIA's switches between GPUs."""
        return tuple(one for one in self.devices if one.vendor == NVIDIA and one.kind == NVSWITCH)


PCI = Answer("pci", shape=PciFacts)


@reading(PCI, trouble)
def pci(answer: PciFacts) -> PciFacts:
    """Read the devices. A machine without the bus has none."""
    return answer


FACTS = (Fact(PciFacts, (PCI,), pci),)
