"""GPUs that were tested alone, by hand."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.gpus import GpuFacts
from ncheck.model.cluster import Facts
from ncheck.parse.nvidia_smi import Gpu
from ncheck.probe.gpu_test import EXACT, BusyLook, Figures, GpuTestFacts, TestedGpu

A100 = "NVIDIA A100-SXM4-80GB"
FIGURES = Figures(
    fma=18.0, late_fma=17.9, bf16=270.0, fp32=18.2, memory=1750.0, to_device=24.0, to_host=25.0, launch=4e-6
)
COMPUTED = {f"{kernel}{when}": (digest, 0) for kernel, digest in EXACT.items() for when in ("", " again")}
LOOK = BusyLook(1400, 1410, 0x4, 390_000, 400_000, 60, 4, 4, 16, 16)


def gpu(index: int, node: str = "n1", **more: object) -> TestedGpu:
    """Return a healthy GPU; `more` are other fields, or figures."""
    figures = replace(FIGURES, **{name: more.pop(name) for name in [*more] if hasattr(FIGURES, name)})  # type: ignore[arg-type]
    healthy = TestedGpu(
        f"GPU-{node}-{index}", f"0000:{index:02x}:00.0", figures, COMPUTED, (), "integers again", None, done=True,
        ended=True, looks=(LOOK, LOOK), before={}, after={},
    )  # fmt: skip
    return replace(healthy, **more)  # type: ignore[arg-type]


def nodes(
    model: str = A100, pairs: tuple[tuple[int, int, float], ...] = (), **tested: tuple[TestedGpu, ...]
) -> dict[str, Facts]:
    """Return nodes with these GPUs, all of one model."""
    return {
        node: {
            GpuTestFacts: GpuTestFacts(gpus, pairs),
            GpuFacts: GpuFacts(
                tuple(Gpu(n, model, one.uuid, one.pci) for n, one in enumerate(gpus)), "550", "12.4", "nvml"
            ),
        }
        for node, gpus in tested.items()
    }
