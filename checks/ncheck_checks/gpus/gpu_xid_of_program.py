"""The driver reported a program error on a GPU

## What it finds
Xid lines in the kernel log since boot that usually come from a program and not from the GPU: 13, 31, 45, 94 and
similar, errors of an NVLink that say Nonfatal (144 to 150), and numbers that NVIDIA's catalogue does not explain.
Numbers that need no action (63, 92 and others) are not reported; gpu-xid-reported covers those of broken GPUs. The
message names the part and the likely cause where the line says them: for 13 and 31, the same unit (GPC and TPC, or
engine) of the same GPU that stops another program within a day may be broken, unless another GPU reports the same.

## Why it matters
The program that caused it was stopped. If none of your programs explains a recent line, it is the first sign of a
failing GPU.

## What to type
`sudo journalctl -k -g NVRM` shows the time. If it was your program, run it under `compute-sanitizer`. Where the
advice is to test the GPU: `dcgmi diag -r 3` while no job uses it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpu_health import GpuHealthFacts
from ncheck.facts.gpu_log import KernelLogFacts, of_programs


@node_check("NC507", Severity.WARNING, KernelLogFacts, also=(GpuHealthFacts,))
def gpu_xid_of_program(node: NodeView) -> Iterator[Problem]:
    health = node.maybe(GpuHealthFacts)
    return of_programs(node[KernelLogFacts], health if isinstance(health, GpuHealthFacts) else None)
