"""Which of its GPUs a node shows to the job: CUDA_VISIBLE_DEVICES, as CUDA reads it."""

from __future__ import annotations

from collections.abc import Iterator

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.parse.nvidia_smi import Gpu

VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus(gpus: GpuFacts, environment: EnvironmentFacts) -> int | None:
    """Return how many GPUs a program sees; None where parts of GPUs (MIG) are named, whose number nobody told.

    CUDA takes the list up to its first word that means no GPU; so "-1" and "" show none.
    """
    value = environment.variables.get(VARIABLE)
    if value is None:
        return len(gpus.gpus)
    seen: list[Gpu] = []
    for word in (part.strip() for part in value.split(",")):
        if word.startswith("MIG"):
            return None
        gpu = _meant(word, gpus)
        if gpu is None:
            break
        if gpu in seen:
            return 0  # CUDA shows none at all where one is named twice
        seen.append(gpu)
    return len(seen)


def _meant(word: str, gpus: GpuFacts) -> Gpu | None:
    """Return the GPU of a number, or of the beginning of a UUID that only one has."""
    if word.isascii() and word.isdecimal():
        return next((gpu for gpu in gpus.gpus if gpu.index == int(word)), None)
    meant = [gpu for gpu in gpus.gpus if word.startswith("GPU-") and gpu.uuid.startswith(word)]
    return meant[0] if len(meant) == 1 else None


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
