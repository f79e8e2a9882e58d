"""The hardware holds a GPU's clocks down

## What it finds
GPUs whose clocks the hardware lowers, for as long as ncheck looked: hardware slowdown, hardware thermal slowdown, power
brake ("Clocks Event Reasons" of `nvidia-smi -q`). A power cap, idle clocks and limits that somebody set are no fault
and not reported; gpu-hot reports what the driver does before the hardware must.

## Why it matters
The clocks are halved or worse: every all-reduce waits for this GPU. Heat (a fan, a blocked air flow, a cooling plate)
or a power supply that asks for less (power brake) is the cause, and it does not end by itself.

## What to type
`nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER` on the named node; then look at fans, cooling and power supplies, such
as with `sudo ipmitool sel list`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.gpu_health import GpuHealth, GpuHealthFacts, nothing_to_judge

_OF_LAPTOPS = ("Laptop", "Max-Q", "Mobile")
_REASONS = {0x40: "hardware thermal slowdown", 0x80: "power brake", 0x08: "hardware slowdown"}
_IDLE_AND_SLOWED = 0x09  # alone: by nvml.h a slowdown "may be also reported during PState or clock change"


@node_check("NC523", Severity.ERROR, GpuHealthFacts, explains=SLOW_NETWORK, hardware=True)
def gpu_slowed_by_hardware(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    facts = node[GpuHealthFacts]
    lines = tuple(f"{gpu.called}: {why}" for gpu in facts.gpus if (why := _slowed(gpu)))
    if lines:
        message = f"the hardware holds the clocks of {len(lines)} GPU(s) down: {lines[0]}"
        fix = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"
        yield Problem(message, fix, lines, look=True, summary="the hardware slows GPUs down")
    yield from nothing_to_judge(facts, "the reason for low clocks", lambda gpu: gpu.throttled, "throttled")


def _slowed(gpu: GpuHealth) -> str:
    if any(word in gpu.name for word in _OF_LAPTOPS):
        return ""  # on battery
    reasons = 0 if gpu.throttled == _IDLE_AND_SLOWED else gpu.throttled or 0
    words = [words for bit, words in _REASONS.items() if reasons & bit]
    if words and gpu.temperature is not None:
        words.append(f"{gpu.temperature} degrees")
    return ", ".join(words)
