"""An AMD GPU is on the PCI bus, and the driver does not use it

## What it finds
Nodes on which the driver amdgpu has some of the AMD accelerators on the PCI bus, and others have no driver. Displays,
virtual functions, and accelerators that a virtual machine was given (vfio-pci) do not count.

## Why it matters
The driver could not start this GPU, often after an error of its firmware or memory, or because a reset failed. ROCm
does not list it: a rank finds no device and ends ("invalid device ordinal"), or all ranks get other GPUs than on the
other nodes.

## What to type
`sudo journalctl -k -g amdgpu` on the named node says why; then reboot. If that does not help, the GPU needs a repair.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.pci import AMD, PciFacts

_ACCELERATOR = 0x12  # PCI base class: integrated GPUs and those of desktops are displays


@node_check("NC561", Severity.ERROR, PciFacts, next_step="fix-first")
def amd_gpu_without_driver(node: NodeView) -> Iterator[Problem | NotApplicable]:
    every = [one for one in node[PciFacts].gpus(AMD) if one.kind >> 8 == _ACCELERATOR]
    without = [one.address for one in every if not one.driver]
    if not any(one.driver == "amdgpu" for one in every):
        yield NotApplicable("no AMD accelerator that amdgpu drives")
    elif without:
        summary = f"{len(without)} of {len(every)} AMD GPUs have no driver"
        message = f"{summary}: {', '.join(without)}"
        yield Problem(message, "sudo journalctl -k -g amdgpu", look=True, summary=summary)
