"""Each GPU tested alone, before ranks communicate: what it computed, how fast, and how it was meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from ncheck.decode import OPTIONAL, AtMost, Maybe, Null, Words
from ncheck.expression import expression
from ncheck.facts.definition import MEASURING, Fact
from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import Answer
from ncheck.model.phase import NotAsked, Questions
from ncheck.probe.facts import ProbeFacts
from ncheck.topology.gpus import in_use

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster
    from ncheck.model.evidence import JsonValue
    from ncheck.settings import Settings

_PCI = expression(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# What a GPU that was tested alone may explain: a slow all-reduce of all GPUs of its node, a node that is slow with one
# GPU and one NIC, and wrong sums.
SLOW_GPUS, SLOW_NODE, WRONG_SUMS = "slow GPUs", "slow node", "wrong sums"
SLOW_MEMBER = "slow member"  # what a node that is slow with every partner explains: a group that is as slow as it
# What each GPU computes, cold, and "again" when warm: whole numbers, and fused multiply-adds of IEEE 754 that round to
# the nearest. So exact arithmetic gives the digest too; the tests compute both.
EXACT = {"integers": "6f01ed4fc43e4e36", "floats": "f6986a1c5e805e1c"}
KERNELS = tuple(EXACT)
SECONDS = {"quick": 2.0, "long": 120.0}  # for which each GPU computes, by --gpu-test
LIMIT = {
    "quick": 60.0,
    "long": 240.0,
    "none": 1.0,
}  # of all on one node, which ends when it is done: eight GPUs that sleep need 8 to 25 s for the first context
# Steps in which a GPU that is late is at fault: it had computed before, and nothing is loaded or woken any more.
_COMPUTING = ("computing", "computing again", "integers again", "floats again")


@dataclass(frozen=True)
class Figures:
    """How fast one GPU is alone; None was not measured.

    `fma`: TFLOPS in single precision by a kernel of ncheck's own; `late_fma`: TFLOPS of the same at the end, when the
    GPU is warm. `bf16` and `fp32`: TFLOPS of a matrix product by the job's cuBLAS. `memory`: GB/s read and written by
    a copy on the device; `to_device` and `to_host`: GB/s of a copy from and to pinned memory. `launch`: seconds of an
    empty kernel.
    """

    fma: Maybe[float] = None
    late_fma: Maybe[float] = None
    bf16: Maybe[float] = None
    fp32: Maybe[float] = None
    memory: Maybe[float] = None
    to_device: Maybe[float] = None
    to_host: Maybe[float] = None
    launch: Maybe[float] = None


@dataclass(frozen=True)
class BusyLook:
    """One look by NVML, or of AMD by sysfs, while the GPU computes; None is what it does not say.

    `clock` and `most_clock`: MHz; `power` and `power_limit`: milliwatts; `temperature`: degrees Celsius. `throttled`:
    NVML's bits for why the clock is low. `generation` and `most_generation`: of PCIe, now and at most; `width` and
    `most_width`: how many lanes.
    """

    clock: Maybe[int] = None
    most_clock: Maybe[int] = None
    throttled: Maybe[int] = None
    power: Maybe[int] = None
    power_limit: Maybe[int] = None
    temperature: Maybe[int] = None
    generation: Maybe[int] = None
    most_generation: Maybe[int] = None
    width: Maybe[int] = None
    most_width: Maybe[int] = None


@dataclass(frozen=True)
class DriverFailure:
    """Why the test of a GPU ended early. `step`: what it was doing; `words`: the driver's message; `code`: its number
    (CUresult), None where it has none.
    """

    step: Words
    words: Words
    code: int | None = None


def _address(text: str) -> str:
    if not _PCI.fullmatch(text):
        raise ValueError("not a PCI address")
    return text


@dataclass(frozen=True)
class TestedGpu:
    """One GPU. `results`: by kernel the digest of what it computed, and how many of its 4,096 blocks differ from that.

    `step`: what it did last; `done`: it came to the end; `ended`: its process ended by itself; `words`: what that
    printed last. `serial`: of the board, "" where NVML has none, as of consumer cards. `before` and `after`: counters
    of errors. `unwatched`: why NVML was not asked meanwhile.
    """

    uuid: Words
    pci: Annotated[str, _address]
    figures: Figures
    results: Mapping[str, tuple[Words, int]]
    notes: Annotated[tuple[Words, ...], AtMost(4)]
    step: Words
    failure: DriverFailure | None
    done: bool
    ended: bool
    looks: Annotated[tuple[BusyLook, ...], AtMost(20)]
    before: Mapping[str, int]
    after: Mapping[str, int]
    unwatched: Words = ""
    words: Annotated[Words, OPTIONAL, Null("")] = ""
    serial: Annotated[Words, OPTIONAL] = ""

    @property
    def known_by(self) -> str:
        """What names it for good: its UUID, and the serial number of its board."""
        return f"{self.uuid}, serial number {self.serial}" if self.serial else self.uuid

    @property
    def late(self) -> bool:
        """Whether its time was over before it computed, or in its first matrix products: no fault of the GPU."""
        return not (self.done or self.failure or self.ended or self.step in _COMPUTING)

    @property
    def trouble(self) -> str:
        """Why the test did not come to its end; "" if it did."""
        if self.done:
            return ""
        if self.failure:
            return f"{self.failure.step}: {self.failure.words}"
        if self.ended:
            return f"its process died in: {self.step}" + (f": {self.words}" if self.words else "")
        return f"it did not end within its time, in: {self.step}"


@dataclass(frozen=True)
class GpuTestFacts:
    """The GPUs of a node, each tested alone. `pairs`: from which to which, by their place in `gpus`, and GB/s.

    `words`: why not all pairs were measured. `vendor`: NVIDIA or AMD.
    """

    gpus: tuple[TestedGpu, ...]
    pairs: tuple[tuple[int, int, float], ...] = ()
    words: Words = ""
    vendor: Annotated[Words, OPTIONAL] = "NVIDIA"

    def shown_by(self, nvidia: str, amd: str = "amd-smi metric") -> str:
        """Return the command that shows more: the vendors' tools have other names."""
        return amd if self.vendor == "AMD" else nvidia


GPU_TEST = Answer("gpu-test", shape=GpuTestFacts)


def exempt_untested(cluster: Cluster, settings: Settings) -> dict[str, str]:
    """Exempt all nodes where no GPU is tested."""
    why = "--probe none" if settings.probe == "none" else "--gpu-test none" if settings.gpu_test == "none" else ""
    return dict.fromkeys(cluster.names, why) if why else {}


def gpu_questions(cluster: Cluster, nodes: Iterable[str], settings: Settings, seconds: float) -> Questions:
    """Return the question for each node with idle GPUs, and for the others a note why they are not tested."""
    known, health = cluster.facts(GpuFacts), cluster.facts(GpuHealthFacts)
    limit = min(LIMIT[settings.gpu_test], seconds)
    with_mig = {node for node, facts in health.items() if any(gpu.mig for gpu in facts.gpus)}
    mig = NotAsked(GPU_TEST, "MIG is on")
    return {node: (mig if node in with_mig else _question(known.get(node), settings, limit),) for node in nodes}


def _question(found: GpuFacts | None, settings: Settings, limit: float) -> Answer | NotAsked:
    if found is None or found.vendor not in ("NVIDIA", "AMD") or not found.gpus:
        return NotAsked(GPU_TEST, "no GPU of NVIDIA or AMD is known")
    if found.vendor == "AMD" and len({gpu.pci.partition(".")[0] for gpu in found.gpus}) < len(found.gpus):
        return NotAsked(GPU_TEST, "the GPUs are partitioned, or their PCI addresses are not known")
    used = [*in_use(found)]
    if used and not settings.force:
        return NotAsked(GPU_TEST, f"GPU {used[0].index} is in use", failed=True)  # it was asked for
    if found.vendor == "NVIDIA" and not all(gpu.uuid for gpu in found.gpus):
        return NotAsked(GPU_TEST, "the GPUs have no UUID to be named by", failed=True)
    arguments: dict[str, JsonValue] = {
        "gpus": [{"uuid": gpu.uuid or gpu.pci, "pci": gpu.pci} for gpu in found.gpus],
        "vendor": found.vendor,
        "force": settings.force,
        "seconds": min(SECONDS[settings.gpu_test], limit / 4),
    }
    return replace(GPU_TEST, arguments=arguments, timeout=limit)


FACTS = (
    Fact(
        GpuTestFacts, (GPU_TEST,), phase=MEASURING, needs=(GpuFacts, GpuHealthFacts, ProbeFacts),
        exempt=exempt_untested,
        unrecorded="the recording lacks it: no --gpu-test was given then",
    ),
)  # fmt: skip
