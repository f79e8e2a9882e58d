"""The GPU driver is not the same on every node

## What it finds
Nodes with another version of the NVIDIA driver than the rest of the nodes with the same GPU model.

## Why it matters
NCCL chooses protocols, and CUDA its features, by the driver of each node: ranks may choose differently, and a program
built for the newest CUDA starts on some nodes only.

## What to type
`cat /proc/driver/nvidia/version` on the named nodes, then install the majority's driver and reboot.
"""

from __future__ import annotations

from ncheck import Severity, parity_check
from ncheck.facts.gpus import GpuFacts


@parity_check(
    "NC503", Severity.WARNING, GpuFacts, what="the GPU driver differs", fix="cat /proc/driver/nvidia/version",
    shown=lambda gpus: f"driver {gpus.driver}, CUDA {gpus.cuda}",
)  # fmt: skip
def driver_differs(gpus: GpuFacts) -> str:
    return gpus.driver
