"""What is usual of GPUs that were tested alone, and which are below it. The checks of NC75 and the reports read it.

The usual of a figure is the median of all GPUs of one model in the cluster; of two GPUs, the faster one. Where there is
only one, or all may be slow together, the data sheet decides, with a wide margin: a copy and a plain loop never reach
what it promises. Where a power cap holds the clock down, less is promised, and so it is for boards of 70 to 150 W: an
L4 reaches 0.35 to 0.51 of it (torch-performance-test-data issue 120), a T4 0.37 (forums.developer.nvidia.com 264462).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import TYPE_CHECKING

from ncheck.facts.gpus import GpuFacts
from ncheck.lazy_dataclass import dataclass
from ncheck.model.check import Inconclusive, NotApplicable, Problem
from ncheck.model.finding import Severity
from ncheck.model.report import GpuAlone, GpuFigure, Standing
from ncheck.probe.gpu_test import BusyLook, GpuTestFacts, TestedGpu

if TYPE_CHECKING:
    from ncheck.model.cluster import Cluster

LOW, FAR_TOO_LOW, OF_DATA_SHEET = 0.92, 0.8, 0.6
NOTHING_TO_COMPARE = "nothing to compare with: one GPU of its model, and ncheck has no figure of its data sheet"
_FEW = 3  # values: of fewer the median is none
_MOST_EVIDENCE = 9

POWER_CAP = 0x4  # NVML's bit for a clock that the power limit holds down
_OF_SMALL_BOARD, _SMALL_BOARDS = 0.3, frozenset({"T4", "L4", "A10", "A10G"})  # 70 to 150 W

# TFLOPS in single precision without tensor cores, and GB/s of memory, from NVIDIA's data sheets of these boards; of
# H20, GB200, GB300, B300, RTX PRO 6000 as others publish them (tweaktown.com, zangshuxian.com, verda.com, topcpu.net).
_DATA_SHEETS = {
    "V100-SXM2-16GB": (15.7, 900), "V100-SXM2-32GB": (15.7, 900), "V100-PCIE-16GB": (14.0, 900),
    "V100-PCIE-32GB": (14.0, 900), "A100-SXM4-40GB": (19.5, 1555), "A100-SXM4-80GB": (19.5, 2039),
    "A100 80GB PCIe": (19.5, 1935), "A100-PCIE-40GB": (19.5, 1555), "A30": (10.3, 933), "A40": (37.4, 696),
    "A10G": (31.2, 600), "A10": (31.2, 600), "L40S": (91.6, 864), "L40": (90.5, 864), "L4": (30.3, 300),
    "T4": (8.1, 320), "H100 80GB HBM3": (67, 3350), "H100 PCIe": (51, 2000), "H100 NVL": (60, 3900),
    "H200 NVL": (60, 4800), "H200": (67, 4800), "B200": (75, 7700), "H20": (44, 4000),
    "GB200": (75, 7700), "GB300": (80, 8000), "B300 SXM6 AC": (75, 7700),
    "RTX PRO 6000 Blackwell Workstation Edition": (125, 1792),
}  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """One figure of one GPU; `basis` says what the usual is."""

    node: str
    gpu: TestedGpu
    name: str
    value: float
    usual: float
    basis: str

    @property
    def ratio(self) -> float:
        """What it reaches of the usual."""
        return self.value / self.usual

    @property
    def standing(self) -> Standing:
        """The verdict."""
        if self.ratio < FAR_TOO_LOW:
            return Standing.FAR_TOO_LOW
        return Standing.LOW if self.ratio < LOW else Standing.OK

    @property
    def text(self) -> str:
        what, unit = FIGURES[self.name]
        return (
            f"{self.gpu.pci}: {what} {_short(self.value)} {unit}, {self.basis} {_short(self.usual)} ({self.ratio:.2f})"
        )


FIGURES = {
    "fma": ("FP32", "TFLOPS"), "bf16": ("BF16 GEMM", "TFLOPS"), "fp32": ("FP32 GEMM", "TFLOPS"),
    "memory": ("memory", "GB/s"), "to_device": ("host to GPU", "GB/s"), "to_host": ("GPU to host", "GB/s"),
}  # fmt: skip


def tested(cluster: Cluster) -> Iterator[tuple[str, TestedGpu, str]]:
    """Yield each tested GPU with its node and its model."""
    listed = cluster.facts(GpuFacts)
    for node, facts in cluster.facts(GpuTestFacts).items():
        known = listed[node].gpus if node in listed else ()
        models = {key: gpu.name for gpu in known for key in (gpu.uuid, gpu.pci)}
        yield from ((node, gpu, models.get(gpu.uuid, "")) for gpu in facts.gpus)


def standings(cluster: Cluster, names: Iterable[str]) -> Iterator[Judged]:
    """Yield how these figures of each GPU stand; nothing where there is no expectation."""
    found: dict[tuple[str, str], list[tuple[str, TestedGpu, float]]] = {}
    for node, gpu, model in tested(cluster):
        for name in names:
            if (value := getattr(gpu.figures, name)) is not None:
                found.setdefault((model, name), []).append((node, gpu, value))
    for (model, name), values in found.items():
        usual = _usual([value for _, _, value in values])
        for node, gpu, value in values:
            what = max(usual, _promised(model, name, gpu))  # what is just above the data sheet's limit is ok
            if what[0]:
                yield Judged(node, gpu, name, value, *what)


def _usual(values: list[float]) -> tuple[float, str]:
    if len(values) >= _FEW:
        return median(values), "the usual is"
    return (max(values), "the other has") if len(values) > 1 else (0.0, "")


def _promised(model: str, name: str, gpu: TestedGpu) -> tuple[float, str]:
    """Return the least that the data sheet lets one expect of this GPU, 0 where it says nothing; and the basis."""
    called = model.removeprefix("NVIDIA ").removeprefix("Tesla ")
    if name not in ("fma", "memory") or called not in _DATA_SHEETS:
        return 0.0, ""
    of_compute, of_memory = _DATA_SHEETS[called]
    if name == "memory":
        return OF_DATA_SHEET * of_memory, f"{OF_DATA_SHEET:.0%} of the data sheet is"
    share = _OF_SMALL_BOARD if called in _SMALL_BOARDS else OF_DATA_SHEET
    least = share * of_compute, f"{share:.0%} of the data sheet is"
    capped = [
        (OF_DATA_SHEET * of_compute * one.clock / one.most_clock, one.clock, one.most_clock)
        for one in gpu.looks
        if one.clock and one.most_clock and (one.throttled or 0) & POWER_CAP
    ]
    if not capped or min(capped)[0] >= least[0]:
        return least
    scaled, clock, most = min(capped)
    return scaled, f"{OF_DATA_SHEET:.0%} of the data sheet at {clock} of {most} MHz is"


def gpus_alone(cluster: Cluster) -> tuple[GpuAlone, ...]:
    """Return what the report shows of each tested GPU."""
    known: dict[tuple[str, str], list[Judged]] = {}
    for one in standings(cluster, FIGURES):
        known.setdefault((one.node, one.gpu.uuid), []).append(one)
    return tuple(_shown(node, gpu, model, known.get((node, gpu.uuid), ())) for node, gpu, model in tested(cluster))


def _shown(node: str, gpu: TestedGpu, model: str, judged: Iterable[Judged]) -> GpuAlone:
    usual = {one.name: one for one in judged}
    figures = tuple(
        GpuFigure(what, value, unit, *((usual[name].usual, usual[name].standing) if name in usual else ()))
        for name, (what, unit) in FIGURES.items()
        if (value := getattr(gpu.figures, name)) is not None
    )
    if gpu.figures.launch is not None:
        figures = (*figures, GpuFigure("launch", gpu.figures.launch * 1e6, "us"))
    busy = gpu.looks[-1] if gpu.looks else BusyLook()
    power = None if busy.power is None else busy.power / 1000
    return GpuAlone(
        node, gpu.pci, gpu.uuid, model, figures, busy.clock, power, busy.temperature, gpu.trouble, gpu.notes
    )


def _unmeasured(facts: GpuTestFacts) -> str:
    whys = [why for gpu in facts.gpus for why in (gpu.trouble, *gpu.notes) if why]
    return "not measured" + (f": {whys[0]}" if whys else "")


def slow_gpus(cluster: Cluster, names: tuple[str, ...], what: str, fix: str) -> Iterator[Problem | NotApplicable]:
    """Yield a problem for each node with GPUs of which one of these figures is low."""
    known: dict[str, list[Judged]] = {}
    for one in standings(cluster, names):
        known.setdefault(one.node, []).append(one)
    for node, facts in cluster.facts(GpuTestFacts).items():
        if node not in known:
            measured = any(getattr(gpu.figures, name) is not None for gpu in facts.gpus for name in names)
            yield NotApplicable(NOTHING_TO_COMPARE if measured else _unmeasured(facts), (node,))
            continue
        low = [one for one in known[node] if one.standing is not Standing.OK]
        if low:
            worst = min(low, key=lambda one: one.ratio)
            gpus = fold_pci(one.gpu for one in low)
            yield Problem(
                f"slow {what} on {gpus} of {node}: {worst.ratio:.2f} of what it should be",
                facts.shown_by(fix), tuple(one.text for one in low[:_MOST_EVIDENCE]), (node,), look=True,
                summary=f"a GPU has slow {what}",
                severity=None if worst.standing is Standing.FAR_TOO_LOW else Severity.WARNING,
            )  # fmt: skip


def unwatched(gpus: Iterable[TestedGpu]) -> Iterator[Inconclusive | NotApplicable]:
    """Yield why nothing is known of how GPUs of one node were under load; nothing where NVML was asked of all."""
    unseen = [gpu for gpu in gpus if gpu.done and not gpu.looks]
    if unseen:
        yield Inconclusive(f"{fold_pci(unseen)}: {unseen[0].unwatched}")
    elif not any(gpu.looks for gpu in gpus):
        yield NotApplicable("no GPU was kept busy to the end")


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"  # noqa: PLR2004  where three digits become 1e+03


def fold_pci(gpus: Iterable[TestedGpu]) -> str:
    return ", ".join(dict.fromkeys(gpu.pci for gpu in gpus))
