"""How GPUs and HCAs are connected to their machine: PCIe lanes and speeds, and the processor above them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PcieLink:
    """One link: its lanes and speed in GT/s a lane now, and at most. None: the system does not say.

    An idle GPU lowers its speed by itself, and never its width.
    """

    width: int | None
    speed: float | None
    most_width: int | None
    most_speed: float | None


@dataclass(frozen=True)
class Processor:
    """The processor as /proc/cpuinfo names it: "GenuineIntel" or "AuthenticAMD", family and model by number."""

    vendor: str
    family: int
    model: int


@dataclass(frozen=True)
class PcieFacts:
    """The links of each device, its own first, then those of the switches above it, up to the processor.

    `gpus` are by PCI address ("0000:0f:00.0"), `hcas` by name ("mlx5_0").
    """

    gpus: Mapping[str, tuple[PcieLink, ...]]
    hcas: Mapping[str, tuple[PcieLink, ...]]
    processor: Processor | None = None
