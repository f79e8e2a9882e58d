"""What the GPUs of a node did while they were watched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from ncheck.decode import Maybe, Words
from ncheck.facts.answers import reading
from ncheck.facts.definition import LOOKING, Fact, trouble
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.triage.facts.jobs import ask_of_ranks
from ncheck.triage.facts.processes import ProcessesFacts


@dataclass(frozen=True)
class GpuLook:
    """One look at a GPU; None is what it does not say.

    `use` and `memory_use` are percent of the time in which a kernel ran, and in which memory was read or written.
    `clock` is in MHz, `power` in milliwatts; `throttled` are NVML's bits for why a clock is low; `ecc` counts the
    errors that could not be corrected since the driver was loaded.
    """

    use: Maybe[int] = None
    memory_use: Maybe[int] = None
    memory_used: Maybe[int] = None
    clock: Maybe[int] = None
    most_clock: Maybe[int] = None
    throttled: Maybe[int] = None
    power: Maybe[int] = None
    power_limit: Maybe[int] = None
    temperature: Maybe[int] = None
    ecc: Maybe[int] = None


@dataclass(frozen=True)
class GpuActivity:
    """One GPU at two looks. `processes`: bytes by pid, None inside a container. `errors`: NVML's words by function."""

    index: int
    looks: tuple[GpuLook, GpuLook]
    pci: str = ""
    minor: int | None = None
    memory_total: int | None = None
    processes: Annotated[Mapping[int, int | None] | None, _by_pid] = None
    errors: Mapping[str, Words] | None = None


@dataclass(frozen=True)
class GpuActivityFacts:
    """The GPUs of a node, watched for `seconds`."""

    gpus: tuple[GpuActivity, ...]
    seconds: float = 2.0


def _by_pid(processes: tuple[tuple[int, int | None], ...] | None) -> dict[int, int | None] | None:
    return None if processes is None else dict(processes)


GPU_ACTIVITY = Answer("gpu-activity", timeout=15.0, shape=GpuActivityFacts)


@reading(GPU_ACTIVITY, trouble)
def gpu_activity(answer: GpuActivityFacts) -> GpuActivityFacts:
    """Read what the GPUs did; a node with no NVIDIA device is Absent."""
    return answer


FACTS = (
    Fact(
        GpuActivityFacts, (GPU_ACTIVITY,), gpu_activity, phase=LOOKING, needs=(ProcessesFacts,),
        questions=ask_of_ranks(GPU_ACTIVITY),
    ),
)  # fmt: skip
