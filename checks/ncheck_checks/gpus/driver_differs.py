"""The GPU driver version differs between nodes

## What it finds
Nodes whose GPU driver (NVIDIA's, or amdgpu) has another version than on the other nodes with the same GPU model. Other
models may need another driver: each release supports a range of them.

## Why it matters
NCCL chooses its protocols, and CUDA its features, by the driver of each node. Ranks may choose differently, and a
program built for the newest CUDA starts on some nodes only.

## What to type
`cat /proc/driver/nvidia/version` (AMD: `amd-smi version`) on the named nodes; then install the majority's driver and
reboot.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.gpus import GpuFacts


@parity_check(
    "NC503", Severity.WARNING, GpuFacts, by_kind=True, what="the GPU driver differs",
    fix=lambda gpus: gpus.driver_shown_by,
    look=True,
    shown=lambda gpus: f"driver {gpus.driver}, {gpus.runtime}",
)  # fmt: skip
def driver_differs(gpus: GpuFacts) -> str:
    return gpus.driver
