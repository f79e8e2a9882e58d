"""The NVIDIA driver's module and library differ

## What it finds
Nodes on which the loaded kernel module is of another version than the driver's libraries: NVML refuses to start
("Failed to initialize NVML: Driver/library version mismatch").

## Why it matters
The driver was updated, often by unattended upgrades, and the old module is still loaded. New CUDA programs fail at init
with error 803, "system has unsupported display driver / cuda driver combination" (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
nvidia-smi fails.

## What to type
`cat /proc/driver/nvidia/version` shows the module. `sudo systemctl reboot` loads the new one; where no program uses a
GPU, `sudo rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia && sudo modprobe nvidia` does, too. In a container: its
libraries must be those of the host; start it again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.cuda_init import DRIVER_MISMATCH, cuda_error
from ncheck.facts.gpu_health import VERSIONS_DIFFER, NvidiaDriverFacts
from ncheck.facts.gpus import DRIVER_FAILS


@node_check(
    "NC533", Severity.ERROR, NvidiaDriverFacts, blocks_plan=True, explains=(cuda_error(DRIVER_MISMATCH), DRIVER_FAILS)
)
def nvidia_driver_mismatched(node: NodeView) -> Iterator[Problem]:
    driver = node[NvidiaDriverFacts]
    differs = bool(driver.module and driver.library and driver.module != driver.library)
    if differs or (driver.failure and driver.failure.code == VERSIONS_DIFFER):
        versions = f": kernel module {driver.module}, library {driver.library}" if differs else ""
        evidence = (driver.failure.words,) if driver.failure else ()
        message = f"the NVIDIA driver's module and library differ{versions}"
        yield Problem(message, "sudo systemctl reboot", evidence, summary="the NVIDIA driver is half updated")
