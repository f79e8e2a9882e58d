"""GPUs, how they hang together, and what the kernel said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.model.fact import Unread


@dataclass(frozen=True)
class Gpu:
    """One GPU; memory in bytes, the PCI address as "0000:0f:00.0"."""

    index: int
    name: str
    uuid: str = ""
    pci: str = ""
    memory_total: int | None = None
    memory_used: int | None = None


@dataclass(frozen=True)
class GpuFacts:
    """The GPUs of a node, asked of NVML and, where that is silent, of nvidia-smi. `cuda` is the driver's, as "12.4".

    `hung` says which nvidia-smi did not end in its time although another source told of the GPUs.
    """

    gpus: tuple[Gpu, ...]
    driver: str
    cuda: str
    source: str  # "nvml" or "nvidia-smi"
    hung: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """The different model names, sorted."""
        return tuple(sorted({gpu.name for gpu in self.gpus}))


@dataclass(frozen=True)
class TopologyFacts:
    """`nvidia-smi topo -m`: `pairs` maps (row, column) to X, NV12, PIX, PXB, PHB, NODE or SYS, in both directions.

    `nics` are the names of the columns or rows as printed (NIC0 or mlx5_0), `legend` maps NIC0 to mlx5_0.
    `cpu_affinity` and `numa_affinity` map GPU0 to "0-31,64-95" and "0".
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    pairs: Mapping[tuple[str, str], str]
    legend: Mapping[str, str]
    cpu_affinity: Mapping[str, str]
    numa_affinity: Mapping[str, str]
    gpu_numa_id: Mapping[str, str] | None = None  # None: the driver prints no such column


@dataclass(frozen=True)
class XidEvent:
    """One `NVRM: Xid` line: the GPU's PCI address, the number, the line itself."""

    pci: str
    xid: int
    line: str


@dataclass(frozen=True)
class KernelLogFacts:
    """What the kernel log says since boot. `source` is "journalctl -k" or "dmesg"."""

    xids: tuple[XidEvent, ...]
    source: str
    oldest: str | Unread = ""
