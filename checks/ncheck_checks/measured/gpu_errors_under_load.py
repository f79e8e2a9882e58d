"""A GPU counts errors while it is tested

## What it finds
GPUs whose counters grew during the test (`--gpu-test quick`): memory errors that could not be corrected, which is an
error; packets that PCIe or NVLink sent again, and recoveries of NVLink, which is a warning.

## Why it matters
An uncorrected memory error ends the job that meets it. Packets that are sent again cost bandwidth now, and are how a
link begins that fails under a long job.

## What to type
`nvidia-smi -q -d ECC,ROW_REMAPPER` on the node that the finding names, and `nvidia-smi nvlink -e` for its NVLinks. Test
again, for longer: `ncheck probe nodes.txt --gpu-test long`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.probe.gpu_test import GpuTestFacts, TestedGpu
from ncheck.probe.gpus_alone import fold_pci

_KINDS = {
    "ecc": "memory errors that could not be corrected", "pcie_replays": "packets that PCIe sent again",
    "nvlink": "replays and recoveries of NVLink",
}  # fmt: skip


@node_check("NC758", Severity.ERROR, GpuTestFacts, hardware=True, next_step="ticket")
def gpu_errors_under_load(node: NodeView) -> Iterator[Problem | NotApplicable]:
    gpus = node[GpuTestFacts].gpus
    grown = [(gpu, kinds) for gpu in gpus if (kinds := _grown(gpu))]
    if grown:
        yield Problem(
            f"errors were counted during the test of {fold_pci(gpu for gpu, _ in grown)}",
            node[GpuTestFacts].shown_by("nvidia-smi -q -d ECC,ROW_REMAPPER"),
            tuple(f"{gpu.pci}: {_KINDS[kind]}: {count}" for gpu, kinds in grown for kind, count in kinds.items()),
            look=True, summary="a GPU counts errors under load",
            severity=None if any("ecc" in kinds for _, kinds in grown) else Severity.WARNING,
        )  # fmt: skip
    elif not any(gpu.before.keys() & gpu.after.keys() for gpu in gpus):
        yield NotApplicable("NVML counts no errors of these GPUs, or was not asked")


def _grown(gpu: TestedGpu) -> dict[str, int]:
    return {
        kind: gpu.after[kind] - gpu.before[kind]
        for kind in _KINDS
        if kind in gpu.before and gpu.after.get(kind, 0) > gpu.before[kind]
    }
