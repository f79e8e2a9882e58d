"""The GPU driver version differs between nodes

## What it finds
Nodes whose NVIDIA driver version differs from the other nodes with the same GPU model. Other models may need another
driver: each release supports a range of them.

## Why it matters
NCCL chooses its protocols, and CUDA its features, by the driver of each node. Ranks may choose differently, and a
program built for the newest CUDA starts on some nodes only.

## What to type
`cat /proc/driver/nvidia/version` on the named nodes; then install the majority's driver and reboot.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.gpus import GpuFacts


@parity_check(
    "NC503", Severity.WARNING, GpuFacts, by_kind=True, what="the GPU driver differs",
    fix="cat /proc/driver/nvidia/version",
    look=True,
    shown=lambda gpus: f"driver {gpus.driver}, CUDA {gpus.cuda}",
)  # fmt: skip
def driver_differs(gpus: GpuFacts) -> str:
    return gpus.driver
