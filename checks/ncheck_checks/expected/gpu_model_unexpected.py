"""A node has GPUs of another model than expected

## What it finds
GPUs whose name does not contain the words of `--expect gpu=H100` or of `[expect]` in ncheck.toml.

## Why it matters
Another model has other memory and another speed: the job does not fit, or all nodes wait for the slow one.

## What to type
`nvidia-smi -L` on the named nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, Unread, node_check
from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.gpus import GpuFacts


@node_check("NC902", Severity.ERROR, ExpectedFacts, also=(GpuFacts,))
def gpu_model_unexpected(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    expected = node[ExpectedFacts].gpu
    gpus = node.maybe(GpuFacts)
    if expected is None:
        yield NotApplicable("no model of GPU is expected: --expect gpu=H100")
    elif isinstance(gpus, Unread):
        yield Inconclusive(gpus.reason)
    else:
        models = gpus.models if isinstance(gpus, GpuFacts) else ()
        others = [model for model in models if expected.lower() not in model.lower()]
        if others or not models:
            found = " + ".join(others) if others else "no NVIDIA GPU"
            fix = gpus.listed_by if isinstance(gpus, GpuFacts) else "nvidia-smi -L"
            yield Problem(f"{found}, expected {expected}", fix, look=True, summary="unexpected GPU model")
