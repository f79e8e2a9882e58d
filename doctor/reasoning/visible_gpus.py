"""Which of its GPUs a node shows to the job: CUDA_VISIBLE_DEVICES, as CUDA reads it."""

from __future__ import annotations

from doctor.model.facts import EnvironmentFacts, Gpu, GpuFacts

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
