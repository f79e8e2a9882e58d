"""Which GPUs somebody uses already: what is measured on them says little, and a job there may find no memory."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.model.facts import Gpu, GpuFacts

# Beyond this share of its memory in use nothing is measured on a GPU, unless --force says so.
TOO_MUCH = 0.10
# What driver and firmware keep for themselves is less than both of these on every GPU.
IDLE_SHARE, IDLE_BYTES = 0.03, 2**30


def share_in_use(gpu: Gpu) -> float | None:
    """Return the share of the memory that is in use; None where the driver does not tell."""
    return gpu.memory_used / gpu.memory_total if gpu.memory_total and gpu.memory_used is not None else None


def busy(gpus: GpuFacts) -> Iterator[Gpu]:
    """Yield the GPUs on which too much is in use to measure anything."""
    yield from (gpu for gpu in gpus.gpus if (share_in_use(gpu) or 0.0) > TOO_MUCH)


def in_use(gpus: GpuFacts) -> Iterator[Gpu]:
    """Yield the GPUs that somebody clearly uses, the busy ones among them."""
    for gpu in gpus.gpus:
        share = share_in_use(gpu) or 0.0
        if share > TOO_MUCH or (share > IDLE_SHARE and (gpu.memory_used or 0) > IDLE_BYTES):
            yield gpu
