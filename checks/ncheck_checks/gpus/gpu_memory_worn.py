"""The memory of a GPU shows wear

## What it finds
GPUs whose next reset will replace a bad memory row (row remap pending), with uncorrectable ECC errors since the driver
was loaded after which the driver needs nothing, with at least 63 retired pages (GPUs before Ampere; the limit of
NVIDIA's DCGM), or with more uncorrectable errors in their caches (SRAM threshold exceeded) than NVIDIA's limit, which
only root can read. gpu-memory-broken reports what stops a job.

## Why it matters
An error was contained and cost one program its life. NVIDIA says that new programs run correctly in the meantime; the
reset makes the spare row active. Many such errors on one GPU are the first sign of a card that fails. A GPU
beyond the SRAM threshold may be replaced, if NVIDIA's field diagnostic confirms it (NVIDIA GPU Memory Error Management,
RMA policy); no reset clears that.

## What to type
`nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT` shows the counts. Between two jobs:
`sudo nvidia-smi --gpu-reset -i ADDRESS`. Ask your vendor about a GPU beyond the SRAM threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpu_health import GpuHealth, GpuHealthFacts

_MOST_RETIRED = 63  # pages; DCGM_LIMIT_MAX_RETIRED_PAGES in DCGM's dcgm_gpu_hardware_limits.h
_SRAM = "more uncorrectable errors in its caches than NVIDIA's limit (SRAM threshold exceeded)"


@node_check("NC522", Severity.WARNING, GpuHealthFacts, hardware=True, resets_gpu=True, next_step="ticket")
def gpu_memory_worn(node: NodeView) -> Iterator[Problem]:
    for gpu in node[GpuHealthFacts].gpus:
        worn = tuple(_worn(gpu))
        if worn:
            final = worn == (_SRAM,)
            does = "-q -d ECC" if final else "--gpu-reset"
            fix = f"sudo nvidia-smi {does} -i {quote(gpu.pci or str(gpu.index))}"
            message = f"the memory of {gpu.called} shows wear: {', '.join(worn)}"
            yield Problem(message, fix, look=final, summary="a GPU shows wear")


def _worn(gpu: GpuHealth) -> Iterator[str]:
    if gpu.remapped and gpu.remapped.pending and not gpu.remapped.failed:
        yield "a bad row is replaced at the next reset (row remap pending)"
    if gpu.ecc and gpu.action == 0:
        yield f"{gpu.ecc} uncorrectable errors since the driver was loaded"
    if gpu.retired is not None and gpu.retired >= _MOST_RETIRED:
        yield f"{gpu.retired} retired pages"
    if gpu.sram_exceeded:
        yield _SRAM
