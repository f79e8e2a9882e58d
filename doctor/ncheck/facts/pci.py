"""The devices on the PCI bus that a job uses: GPUs and accelerators, NICs, InfiniBand adapters, NVSwitches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast

from ncheck.facts.definition import Fact, trouble
from ncheck.facts.shapes import device_name
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read

if TYPE_CHECKING:
    from collections.abc import Iterator

NVIDIA, AMD, MELLANOX = 0x10DE, 0x1002, 0x15B3
_NETWORK, _DISPLAY, _ACCELERATOR, _NVSWITCH = 0x02, 0x03, 0x12, 0x0680
INFINIBAND = 0x0207  # PciDevice.kind of an InfiniBand adapter


@dataclass(frozen=True)
class PciDevice:
    """One device. `kind` is the class without the programming interface: 0x0302 is a 3D controller, 0x0207 InfiniBand.

    `driver` is "" where none is bound; `numa` None where the system does not know, as in most virtual machines.
    `above` are the bridges from the processor down: ("pci0000:15", "0000:15:01.0", "0000:16:00.0").
    """

    address: str
    kind: int
    vendor: int
    device: int
    driver: str = ""
    numa: int | None = None
    cpus: str = ""
    above: tuple[str, ...] = ()
    virtual: bool = False


@dataclass(frozen=True)
class PciFacts:
    """The devices by address; `left_out`: so many were too many for one answer."""

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
    def nvswitches(self) -> tuple[PciDevice, ...]:
        """NVIDIA's switches between GPUs."""
        return tuple(one for one in self.devices if one.vendor == NVIDIA and one.kind == _NVSWITCH)


DeviceAnswer = TypedDict(
    "DeviceAnswer",
    {
        "address": str, "class": str, "vendor": str, "device": str, "driver": str, "numa": int | None, "cpus": str,
        "above": list[str], "virtual": bool,
    },
)  # fmt: skip


class PciAnswer(TypedDict):
    """The devices, numbers as sysfs prints them; `left_out`: how many more there are."""

    devices: list[DeviceAnswer]
    left_out: int


PCI = Answer("pci", shape=PciAnswer)


# 0000:3b:00.0
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

# pci0000:3a, or the address of a bridge
_ABOVE = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}|" + _ADDRESS.pattern)

# 0-47,96-143
_CPUS = re.compile(r"[0-9,-]*")


def pci(evidence: Evidence) -> Read[PciFacts]:
    """Read the devices. Raises ValueError for what is no address, number or list of CPUs."""
    reply = evidence.reply(PCI)
    if why := trouble(PCI, reply):
        return why
    answer = cast("PciAnswer", reply.value)
    return PciFacts(tuple(_devices(answer)), answer["left_out"])


def _devices(answer: PciAnswer) -> Iterator[PciDevice]:
    for one in answer["devices"]:
        if not _ADDRESS.fullmatch(one["address"]) or not _CPUS.fullmatch(one["cpus"]):
            raise ValueError("no device on the PCI bus")
        yield PciDevice(
            address=one["address"],
            kind=int(one["class"], 16) >> 8,
            vendor=int(one["vendor"], 16),
            device=int(one["device"], 16),
            driver=device_name(one["driver"]) if one["driver"] else "",
            numa=one["numa"],
            cpus=one["cpus"],
            above=tuple(place for place in one["above"] if _ABOVE.fullmatch(place)),
            virtual=one["virtual"],
        )


FACTS = (Fact(PciFacts, (PCI,), pci),)
