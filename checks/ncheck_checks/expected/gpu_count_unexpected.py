"""A node has not the expected number of GPUs

## What it finds
Nodes with more or fewer GPUs than `--expect gpus=8` or `[expect]` in ncheck.toml says, and nodes with no NVIDIA GPU.

## Why it matters
A majority cannot see what is missing everywhere: on a cluster where every node lost its driver, all nodes agree.

## What to type
`nvidia-smi -L` and `lspci -d 10de:` on the named nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Absent, Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.gpus import GpuFacts


@node_check("NC901", Severity.ERROR, ExpectedFacts, also=(GpuFacts,))
def gpu_count_unexpected(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    expected = node[ExpectedFacts].gpus
    gpus = node.maybe(GpuFacts)
    if expected is None:
        yield NotApplicable("no number of GPUs is expected: --expect gpus=8")
    elif isinstance(gpus, Unread):
        yield Inconclusive(gpus.reason)
    else:
        count = 0 if isinstance(gpus, Absent) else len(gpus.gpus)
        if count != expected:
            message = f"{count} GPUs, expected {expected}"
            fix = gpus.listed_by if isinstance(gpus, GpuFacts) else "nvidia-smi -L"
            yield Problem(message, fix, look=True, summary="unexpected number of GPUs")
