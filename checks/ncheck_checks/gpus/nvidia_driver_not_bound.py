"""NVIDIA's driver does not drive a GPU

## What it finds
GPUs on the PCI bus that have no driver, or another one such as nouveau, while NVIDIA's driver drives GPUs of the
same type on this or another node.

## Why it matters
CUDA does not see such a GPU: a rank on it ends with "no CUDA-capable device is detected" or "invalid device ordinal",
and the other ranks wait for it. Causes are a driver that failed to load or to build after a kernel update, or nouveau
that was loaded first. A GPU that is reserved for a virtual machine (vfio-pci) is left out.

## What to type
`lspci -k -d 10de:` shows the driver of each GPU. `sudo modprobe nvidia` loads it, or `sudo journalctl -k -g NVRM` says
why it does not come.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Cluster, Problem, Severity, cluster_check
from ncheck.facts.pci import NVIDIA, PciDevice, PciFacts

_FINE = ("nvidia", "vfio-pci")  # the second: reserved for a virtual machine, on purpose


@cluster_check("NC534", Severity.ERROR, PciFacts, alone=True, hardware=True)
def nvidia_driver_not_bound(cluster: Cluster) -> Iterator[Problem]:
    buses = cluster.facts(PciFacts)
    driven = {gpu.device for bus in buses.values() for gpu in bus.gpus(NVIDIA) if gpu.driver == "nvidia"}
    for node, bus in buses.items():
        lost = [gpu for gpu in bus.gpus(NVIDIA) if gpu.driver not in _FINE and gpu.device in driven]
        if lost:
            lines = tuple(f"the GPU at {gpu.address} has {_driver(gpu)}" for gpu in lost)
            message = f"NVIDIA's driver does not drive {len(lost)} GPU(s): {lines[0]}"
            fix = "sudo modprobe nvidia" if not any(gpu.driver for gpu in lost) else "lspci -k -d 10de:"
            yield Problem(
                message, fix, lines, (node,), look=fix.startswith("lspci"), summary="a GPU without NVIDIA's driver"
            )


def _driver(gpu: PciDevice) -> str:
    return f"the driver {gpu.driver}" if gpu.driver else "no driver"
