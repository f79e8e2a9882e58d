"""What the GPUs of a node did while they were watched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from ncheck.facts.definition import LONGEST, LOOKING, Fact, trouble
from ncheck.facts.jobs import ask_of_ranks
from ncheck.facts.processes import ProcessesFacts
from ncheck.model.evidence import Answer, Evidence
from ncheck.model.fact import Read


@dataclass(frozen=True)
class GpuLook:
    """One look at a GPU; None is what it does not say.

    `use` and `memory_use` are percent of the time in which a kernel ran, and in which memory was read or written.
    `clock` is in MHz, `power` in milliwatts; `throttled` are NVML's bits for why a clock is low; `ecc` counts the
    errors that could not be corrected since the driver was loaded.
    """

    use: int | None = None
    memory_use: int | None = None
    memory_used: int | None = None
    clock: int | None = None
    most_clock: int | None = None
    throttled: int | None = None
    power: int | None = None
    power_limit: int | None = None
    temperature: int | None = None
    ecc: int | None = None


@dataclass(frozen=True)
class GpuActivity:
    """One GPU at two looks. `processes`: bytes by pid, None inside a container. `errors`: NVML's words by function."""

    index: int
    looks: tuple[GpuLook, GpuLook]
    pci: str = ""
    minor: int | None = None
    memory_total: int | None = None
    processes: Mapping[int, int | None] | None = None
    errors: Mapping[str, str] | None = None


@dataclass(frozen=True)
class GpuActivityFacts:
    """The GPUs of a node, watched for `seconds`."""

    gpus: tuple[GpuActivity, ...]
    seconds: float = 2.0


class GpuLookAnswer(TypedDict):
    use: int | None
    memory_use: int | None
    memory_used: int | None
    clock: int | None
    most_clock: int | None
    throttled: int | None
    power: int | None
    power_limit: int | None
    temperature: int | None
    ecc: int | None


class GpuAnswer(TypedDict):
    index: int
    pci: str
    minor: int | None
    memory_total: int | None
    processes: list[list[int | None]] | None
    looks: list[GpuLookAnswer]
    errors: Mapping[str, str]


class GpuActivityAnswer(TypedDict):
    seconds: float
    gpus: list[GpuAnswer]


GPU_ACTIVITY = Answer("gpu-activity", timeout=15.0, shape=GpuActivityAnswer)


def gpu_activity(evidence: Evidence) -> Read[GpuActivityFacts]:
    """Read what the GPUs did; a node with no NVIDIA device is Absent."""
    reply = evidence.reply(GPU_ACTIVITY)
    if why := trouble(GPU_ACTIVITY, reply):
        return why
    answer = cast("GpuActivityAnswer", reply.value)
    return GpuActivityFacts(tuple(map(_gpu, answer["gpus"])), answer["seconds"])


def _look(answer: GpuLookAnswer) -> GpuLook:
    figures = {name: answer.get(name) for name in GpuLook.__dataclass_fields__}  # what is not there is None
    return GpuLook(**cast("GpuLookAnswer", figures))


def _gpu(answer: GpuAnswer) -> GpuActivity:
    first, second = map(_look, answer["looks"])
    processes = answer["processes"]
    by_pid = None if processes is None else {pid: used for pid, used in processes if pid is not None}
    errors = {name: words[:LONGEST] for name, words in answer["errors"].items()}
    return GpuActivity(
        answer["index"], (first, second), answer["pci"], answer["minor"], answer["memory_total"], by_pid, errors
    )


FACTS = (
    Fact(
        GpuActivityFacts, (GPU_ACTIVITY,), gpu_activity, phase=LOOKING, needs=(ProcessesFacts,),
        questions=ask_of_ranks(GPU_ACTIVITY),
    ),
)  # fmt: skip
