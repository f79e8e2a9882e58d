"""The driver reported a program error on a GPU

## What it finds
Xid lines in the kernel log since boot that usually come from a program and not from the GPU: 13, 31, 45, 94 and
similar, errors of an NVLink that say Nonfatal (144 to 150), and numbers that NVIDIA's catalogue does not explain.
Numbers that need no action (63, 92 and others) are not reported; gpu-xid-reported covers those of broken GPUs.

## Why it matters
The program that caused it was stopped. If none of your programs explains a recent line, it is the first sign of a
failing GPU.

## What to type
`sudo journalctl -k -g NVRM` shows the time. If it was your program, run it under `compute-sanitizer`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, Problem, Severity, node_check
from ncheck.facts.gpu_log import KernelLogFacts, of_programs


@node_check("NC507", Severity.WARNING, KernelLogFacts)
def gpu_xid_of_program(node: NodeView) -> Iterator[Problem]:
    return of_programs(node[KernelLogFacts])
