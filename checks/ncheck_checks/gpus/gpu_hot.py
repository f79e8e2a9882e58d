"""A GPU is too hot

## What it finds
GPUs that the driver slows down because of heat (software thermal slowdown), whose temperature has reached the GPU's own
slowdown temperature, or whose memory has reached its highest operating temperature. gpu-slowed-by-hardware reports what
the hardware does beyond that.

## Why it matters
Before a job starts, GPUs are idle and cool. One that is hot then is slow in the job, and every all-reduce waits for it.

## What to type
`nvidia-smi -q -d TEMPERATURE,PERFORMANCE` on the named node; then look at its fans and cooling. If a job runs there
already, `nvidia-smi` shows its processes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.gpu_health import GpuHealth, GpuHealthFacts, nothing_to_judge

_SOFTWARE_THERMAL = 0x20
_SENSIBLE = range(50, 131)  # degrees Celsius of a temperature limit; newer GPUs report only their margin


@node_check("NC524", Severity.WARNING, GpuHealthFacts, hardware=True)
def gpu_hot(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    facts = node[GpuHealthFacts]
    lines = tuple(f"{gpu.called}: {why}" for gpu in facts.gpus if (why := _heat(gpu)))
    if lines:
        message = f"{len(lines)} GPU(s) too hot: {lines[0]}"
        fix = "nvidia-smi -q -d TEMPERATURE,PERFORMANCE"
        yield Problem(message, fix, lines, look=True, summary="GPUs are too hot")
    yield from nothing_to_judge(facts, "the temperature", lambda gpu: gpu.temperature, "temperature")


def _heat(gpu: GpuHealth) -> str:
    now = f"{gpu.temperature} degrees" if gpu.temperature is not None else "temperature unknown"
    if gpu.margin is not None and gpu.margin <= 0:
        return f"{now}, at or above its slowdown temperature"
    if gpu.temperature is not None and gpu.slowdown in _SENSIBLE and gpu.temperature >= (gpu.slowdown or 0):
        return f"{now}, slowdown begins at {gpu.slowdown}"
    if gpu.memory_limit in _SENSIBLE and (gpu.memory_temperature or 0) >= (gpu.memory_limit or 0):
        return f"its memory has {gpu.memory_temperature} degrees, and {gpu.memory_limit} is the limit"
    return f"{now}, the driver slows it down" if (gpu.throttled or 0) & _SOFTWARE_THERMAL else ""
