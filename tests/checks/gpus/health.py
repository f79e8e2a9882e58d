"""GPUs for the tests of their health: a healthy H100, and nodes made of such."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncheck.facts.gpu_health import Fabric, Failure, GpuHealth, GpuHealthFacts, RemappedRows
from ncheck.facts.gpu_log import KernelLogFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.parse.nvidia_smi import Gpu

NAME = "NVIDIA H100 80GB HBM3"
H100 = GpuHealth(
    index=0, pci="0000:0f:00.0", name=NAME, ecc_mode=1, ecc_pending=1, ecc=0, ecc_ever=0,
    remapped=RemappedRows(0, 0, pending=False, failed=False), throttled=1, temperature=31, slowdown=89, margin=56,
    persistence=1, compute_mode=0, power_limit=700000, power_default=700000, application_clocks=(1980, 2619),
    max_clocks=(1980, 2619), vbios="96.00.74.00.01", inforom="G520.0200.00.05", memory_temperature=44, memory_limit=95,
    sram_exceeded=False, pcie_replays=0, mig=False, mig_pending=False, links=(1,) * 18,
    link_errors={"flit_crc": 0, "data_crc": 0, "replay": 0, "recovered": 0}, action=0, fabric=Fabric(3),
)  # fmt: skip
# What a consumer card tells, and a vGPU, which has no say in its persistence either.
CONSUMER = GpuHealth(
    0,
    "0000:01:00.0",
    "NVIDIA GeForce RTX 4090",
    throttled=1,
    temperature=40,
    slowdown=90,
    persistence=0,
    compute_mode=0,
)
VGPU = GpuHealth(0, "0000:02:00.0", "GRID A100-40C", throttled=0, compute_mode=0)
MIG = replace(H100, mig=True, mig_pending=True, ecc=None, remapped=None, links=())
UNREAD = GpuHealth(1, "0000:10:00.0", errors={"handle": Failure(999, "Unknown Error")})


def h100(index: int = 0, **changed: Any) -> GpuHealth:
    """Return the GPU at this index, healthy but for what is changed."""
    return replace(H100, index=index, pci=f"0000:{15 + index:02x}:00.0", **changed)


def node(*gpus: GpuHealth, hung: int | None = None, unlisted: dict[str, str] | None = None) -> dict[type, Any]:
    """Return the facts of a node with these GPUs; without any, one that has none."""
    listed = tuple(Gpu(gpu.index, gpu.name) for gpu in gpus)
    return {
        GpuHealthFacts: GpuHealthFacts(gpus, hung, unlisted or {}) if gpus else Absent("no NVIDIA GPU"),
        GpuFacts: GpuFacts(listed, "550.54.15", "12.4", "nvml") if gpus else Absent("no NVIDIA GPU"),
        KernelLogFacts: Unread("this user cannot read the kernel log", needs_root=True),
    }


# One node of each kind that nothing is wrong with.
HEALTHY: dict[str, Facts] = {
    "h100": node(h100(0), h100(1)), "consumer": node(CONSUMER), "vgpu": node(VGPU), "none": node(),
}  # fmt: skip
