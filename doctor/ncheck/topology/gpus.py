"""Which GPUs a node shows to the job (CUDA_VISIBLE_DEVICES, as CUDA reads it), and which of them are in use."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts, GpuProcess
from ncheck.parse.nvidia_smi import Gpu

VARIABLE = "CUDA_VISIBLE_DEVICES"
_OF_AMD = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def visible_gpus(gpus: GpuFacts, environment: EnvironmentFacts) -> int | None:
    """Return how many GPUs a program sees; None if the variable names parts of GPUs (MIG), whose number is unknown.

    AMD's GPUs are selected by several variables, each of which counts what the one before it has left: None, too.

    CUDA reads the list up to the first entry that is no GPU; so "-1" and "" show none.
    """
    if gpus.vendor != "NVIDIA" and any(name in environment.variables for name in (VARIABLE, *_OF_AMD)):
        return None
    value = environment.variables.get(VARIABLE)
    if value is None:
        return len(gpus.gpus)
    seen: list[Gpu] = []
    for word in (part.strip() for part in value.split(",")):
        if word.startswith("MIG"):
            return None
        gpu = _named(word, gpus)
        if gpu is None:
            break
        if gpu in seen:
            return 0  # CUDA shows no GPU at all if one is named twice
        seen.append(gpu)
    return len(seen)


def _named(word: str, gpus: GpuFacts) -> Gpu | None:
    """Return the GPU with this index, or the only one whose UUID starts like this."""
    if word.isascii() and word.isdecimal():
        return next((gpu for gpu in gpus.gpus if gpu.index == int(word)), None)
    matching = [gpu for gpu in gpus.gpus if word.startswith("GPU-") and gpu.uuid.startswith(word)]
    return matching[0] if len(matching) == 1 else None


# Nothing is measured on a GPU with more than this share of its memory in use, except with --force.
TOO_MUCH = 0.10

# Driver and firmware use less than both of these on every GPU.
IDLE_SHARE, IDLE_BYTES = 0.03, 2**30


def share_in_use(gpu: Gpu) -> float | None:
    """Return the share of the memory that is in use; None if the driver does not report it."""
    return gpu.memory_used / gpu.memory_total if gpu.memory_total and gpu.memory_used is not None else None


def used_by_others(gpus: GpuFacts, pids: Collection[int]) -> GpuFacts:
    """Return the GPUs with the memory that processes other than these use; None where these cannot be told apart."""

    def others(gpu: Gpu) -> int | None:
        if gpu.processes is None:
            return None
        found = [used for pid, used in gpu.processes.items() if pid not in pids]
        return None if None in found else sum(used or 0 for used in found)

    return replace(gpus, gpus=tuple(replace(gpu, memory_used=others(gpu)) for gpu in gpus.gpus))


_MPS = "nvidia-cuda-mps"  # nvidia-cuda-mps-server, as the kernel cuts it


def programs_on(gpu: Gpu, gpus: GpuFacts) -> list[GpuProcess]:
    """Return the processes that compute there: no desktop, which also draws, and no server of MPS without a client."""
    known = [gpus.owners.get(pid) or GpuProcess(pid) for pid in gpu.processes or () if pid not in gpu.graphics]
    return [one for one in known if not one.name.startswith(_MPS)]


def unlisted(gpu: Gpu) -> bool:
    """Return whether the driver could list its processes, and lists none."""
    return gpu.processes is not None and not gpu.processes and not gpu.graphics


def busy(gpus: GpuFacts) -> Iterator[Gpu]:
    """Yield the GPUs with too much memory in use to measure anything."""
    yield from (gpu for gpu in gpus.gpus if (share_in_use(gpu) or 0.0) > TOO_MUCH)


def in_use(gpus: GpuFacts) -> Iterator[Gpu]:
    """Yield the GPUs that a process clearly uses, including the busy ones."""
    for gpu in gpus.gpus:
        share = share_in_use(gpu) or 0.0
        if share > TOO_MUCH or (share > IDLE_SHARE and (gpu.memory_used or 0) > IDLE_BYTES):
            yield gpu
