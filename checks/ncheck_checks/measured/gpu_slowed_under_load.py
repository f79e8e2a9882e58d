"""A GPU becomes slow under load

## What it finds
GPUs that became slower than 0.92 of what they reached at the beginning, while they computed, or whose clocks the
hardware held down meanwhile, in two looks in a row: hardware slowdown, thermal slowdown, power brake. A power cap alone
is usual under full load, and no finding with what it costs (`--gpu-test quick`; `long` shows heat that needs minutes).

## Why it matters
At rest such a GPU looks healthy. In a job it becomes the slowest one after some minutes, and all ranks wait for it.

## What to type
`nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER` on the node that the finding names, while the GPU is busy. Then look
at fans, air flow, cooling plates and power supplies.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ncheck import SLOW_NETWORK, Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.probe.gpu_test import SLOW_GPUS, SLOW_NODE, GpuTestFacts, TestedGpu
from ncheck.probe.gpus_alone import LOW, POWER_CAP, fold_pci, unwatched

# NVML's bits for why clocks are low, of those that are faults.
_REASONS = {
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x08: "hardware slowdown",
    0x20: "heat (by the driver)",
}


@node_check("NC755", Severity.ERROR, GpuTestFacts, explains=(SLOW_NETWORK, SLOW_GPUS, SLOW_NODE), hardware=True)
def gpu_slowed_under_load(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    gpus = node[GpuTestFacts].gpus
    slowed = [(gpu, why) for gpu in gpus if (why := _slowed(gpu))]
    if slowed:
        yield Problem(
            f"slowed under load: {fold_pci(gpu for gpu, _ in slowed)}: {slowed[0][1]}",
            node[GpuTestFacts].shown_by("nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"),
            tuple(f"{gpu.pci}: {why}" for gpu, why in slowed),
            look=True, summary="a GPU slows down under load",
        )  # fmt: skip
    yield from unwatched(gpus)


def _slowed(gpu: TestedGpu) -> str:
    seen = [look.throttled or 0 for look in gpu.looks]
    bits = 0
    for one, following in pairwise(seen):  # when a load begins, NVML may say any of them for a moment
        bits |= one & following
    whys = [words for bit, words in _REASONS.items() if bits & bit]
    first, last = gpu.figures.fma, gpu.figures.late_fma
    if first and last and last < LOW * first and (whys or not bits & POWER_CAP):
        whys.append(f"{last:.3g} TFLOPS at the end, {first:.3g} at the beginning")
    hottest = max((look.temperature for look in gpu.looks if look.temperature is not None), default=None)
    if whys and hottest is not None:
        whys.append(f"{hottest} degrees")
    return ", ".join(whys)
