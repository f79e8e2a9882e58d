"""What the ranks of a job, and the network and the GPUs of their node, have done so far: sums that only grow."""

from __future__ import annotations

from ncheck.facts.definition import WATCHING, Fact
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.triage.facts.processes import ProcessesFacts


@dataclass(frozen=True)
class RankPulse:
    """One rank. `cpu`: seconds; `moved`: bytes read and written, gloo's traffic too, None if this user may not know."""

    pid: int
    state: str
    cpu: float
    moved: int | None


@dataclass(frozen=True)
class GpuPulse:
    """Percent of the last moment in which kernels ran, and in which memory was used; added up over the GPUs."""

    use: int
    memory_use: int


@dataclass(frozen=True)
class PulseFacts:
    """One node at `time`, seconds of its own clock. `network` and `ports`: bytes of interfaces and of HCA ports.

    `ranks` are those that still run.
    """

    time: float
    ranks: tuple[RankPulse, ...]
    network: int
    ports: int
    gpus: GpuPulse | None


PULSE = Answer("pulse", timeout=5.0, shape=PulseFacts)

FACTS = (Fact(PulseFacts, (PULSE,), phase=WATCHING, needs=(ProcessesFacts,)),)  # triage/watch.py asks for it
