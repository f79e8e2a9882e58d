"""The driver reported a broken GPU

## What it finds
Xid lines in the kernel log since boot that require a reset of the GPU, a reboot, or a check of its links and memory:
48, 74, 79, 95, 119 and similar, 154 where the driver asks for a reset or a reboot, and 144 to 150 unless they say
Nonfatal. For 144 to 150, and for 74 of a Hopper GPU, the message names the NVLink, whether hardware or software is the
cause, and what to do first, by the codes in the line. Meaning and advice are those of NVIDIA's Xid catalogue. Lines
from before the driver was last loaded do not count, and those of a GPU of which the driver has said since that it needs
no recovery (new drivers): gpu-xid-repaired lists them. A GPU that the driver could not initialize counts, too. On most
machines only root can read the kernel log: use `--sudo`.

## Why it matters
A GPU with such an error may still answer nvidia-smi. The job crashes on it or hangs in its first collective.

## What to type
On the node: `sudo nvidia-smi --gpu-reset -i ADDRESS` while no job uses that GPU. After Xid 79, "GPU has
fallen off the bus": `sudo systemctl reboot`. If the error returns, the card or its slot is defective.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.facts.gpu_log import GPU_ERROR, KernelLogFacts, of_broken_gpus


@node_check(
    "NC506", Severity.ERROR, KernelLogFacts, also=(GpuHealthFacts,), explains=GPU_ERROR, hardware=True, resets_gpu=True
)
def gpu_xid_reported(node: NodeView) -> Iterator[Problem]:
    health = node.maybe(GpuHealthFacts)
    return of_broken_gpus(node[KernelLogFacts], health if isinstance(health, GpuHealthFacts) else None)
