"""The driver reported a program's fault on a GPU

## What it finds
Xid lines in the kernel log since boot that most often come from a program and not from the GPU: 13, 31, 45, 94 and
their kin. Numbers for which nothing need be done (63, 92 ...) are left out; those of broken GPUs have their own
check.

## Why it matters
The program that met it was ended. A line of today that no program of yours explains is the first sign of a failing
GPU.

## What to type
`sudo journalctl -k -g NVRM` shows when it was. If it was your program: run it under `compute-sanitizer`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.kernel_log import KernelLogFacts, problems


@node_check("NC507", Severity.WARNING, KernelLogFacts)
def gpu_xid_of_program(node: NodeView) -> Iterator[Problem]:
    return problems(node[KernelLogFacts], fatal=False)
