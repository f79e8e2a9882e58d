"""The memory of a GPU is broken

## What it finds
GPUs with a failed row remap (no spare row is left where one is needed), with a page whose retirement is pending (GPUs
before Ampere), or with uncorrectable ECC errors since the driver was loaded, unless the driver says that the GPU needs
no recovery: gpu-memory-worn reports those. GPUs without ECC, parts of a GPU (MIG) and most vGPUs do not report this.

## Why it matters
A program that touches the bad memory ends with "uncorrectable ECC error encountered"; the other ranks wait for it.
Before Ampere no new program starts on the GPU until the page is retired. A failed row remap is NVIDIA's criterion for a
replacement of the card (NVIDIA GPU Memory Error Management, RMA policy).

## What to type
`nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT` shows the counts. Reset the GPU while no job uses it:
`sudo nvidia-smi --gpu-reset -i ADDRESS`. After a failed row remap, have it replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from shlex import quote

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.gpu_health import GpuHealth, GpuHealthFacts, nothing_to_judge
from ncheck.facts.gpu_log import GPU_ERROR, KernelLogFacts, broken_gpus


@node_check("NC521", Severity.ERROR, GpuHealthFacts, also=(KernelLogFacts,), hardware=True, resets_gpu=True)
def gpu_memory_broken(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    facts, log = node[GpuHealthFacts], node.maybe(KernelLogFacts)
    reported = broken_gpus(log, facts) if isinstance(log, KernelLogFacts) else {}
    for gpu in facts.gpus:
        follows = GPU_ERROR if gpu.pci in reported else ""
        yield from (replace(problem, follows=follows) for problem in _of_gpu(gpu))
    yield from nothing_to_judge(facts, "ECC errors", _memory, "ecc", "remapped", "retiring")


def _of_gpu(gpu: GpuHealth) -> Iterator[Problem]:
    ever = (f"{gpu.ecc_ever} uncorrectable errors in the life of the GPU",) if gpu.ecc_ever else ()
    if gpu.remapped and gpu.remapped.failed:
        message = f"a bad memory row of {gpu.called} could not be replaced by a spare one: have the GPU replaced"
        fix = f"nvidia-smi -q -d ROW_REMAPPER -i {_id(gpu)}"
        yield Problem(message, fix, ever, look=True, summary="a GPU's memory is broken")
    elif gpu.retiring:
        message = f"a bad memory page of {gpu.called} waits to be retired: no program starts there before a reset"
        yield Problem(message, f"sudo nvidia-smi --gpu-reset -i {_id(gpu)}", ever, summary="a GPU needs a reset")
    elif gpu.ecc and gpu.action != 0:
        message = f"{gpu.ecc} uncorrectable memory errors of {gpu.called} since the driver was loaded"
        yield Problem(message, f"sudo nvidia-smi --gpu-reset -i {_id(gpu)}", ever, summary="ECC errors of a GPU")


def _memory(gpu: GpuHealth) -> object:
    return next((value for value in (gpu.ecc, gpu.remapped, gpu.retiring) if value is not None), None)


def _id(gpu: GpuHealth) -> str:
    return quote(gpu.pci or str(gpu.index))
