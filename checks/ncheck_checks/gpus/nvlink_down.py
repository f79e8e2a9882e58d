"""An NVLink is down

## What it finds
Nodes on which a GPU has fewer active NVLinks than the same GPU has on most nodes with this GPU model, and GPUs with
fewer than most GPUs of their own node. Links that are asleep count as active; GPUs in MIG mode are left out.

## Why it matters
NCCL builds its rings over NVLink. With a link down, the pair is slower, or its data goes over PCIe and the processor;
on boards with NVSwitches the GPU may be shut out of NVLink, and CUDA fails at init. Every all-reduce waits for that
GPU.

## What to type
`nvidia-smi nvlink -s` on the named node and on a healthy one. A reset of all GPUs of the board, or a reboot, trains the
links again. If one stays down, the board, a bridge or a cable is defective.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, Problem, Severity, cluster_check, split
from ncheck.facts.fabric_manager import NO_FABRIC
from ncheck.facts.gpu_health import GpuHealth, GpuHealthFacts, unread_nodes
from ncheck.topology.judgement import LINK_DOWN, UNEVEN

_UP = (1, 2)  # active, asleep to save power


@cluster_check(
    "NC529",
    Severity.ERROR,
    GpuHealthFacts,
    by_kind=True,
    alone=True,
    explains=(SLOW_NETWORK, LINK_DOWN, UNEVEN),
    hardware=True,
)
def nvlink_down(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    health = cluster.facts(GpuHealthFacts)
    yield from unread_nodes(health, "the state of the NVLinks", "links")
    whole = {node: facts for node, facts in health.items() if _comparable(facts)}
    parted = split({node: tuple(map(_active, facts.gpus)) for node, facts in whole.items()})
    wanted = parted.majority if parted else None
    for node, facts in whole.items():
        usual = wanted if wanted and len(wanted) == len(facts.gpus) else _usual(facts)
        lacking = [(gpu, most) for gpu, most in zip(facts.gpus, usual, strict=True) if _active(gpu) < most]
        lines = tuple(f"{gpu.called}: {_active(gpu)} of {most} NVLinks active{_inactive(gpu)}" for gpu, most in lacking)
        if lines:
            yield Problem(
                f"NVLinks are down: {lines[0]}", "nvidia-smi nvlink -s", lines, (node,), look=True,
                summary="NVLinks are down", follows="" if any(_active(gpu) for gpu, _ in lacking) else NO_FABRIC,
            )  # fmt: skip


def _comparable(facts: GpuHealthFacts) -> bool:
    return facts.hung is None and not any(
        gpu.mig or "links" in gpu.errors or "handle" in gpu.errors for gpu in facts.gpus
    )


def _active(gpu: GpuHealth) -> int:
    return len([state for state in gpu.links if state in _UP])


def _inactive(gpu: GpuHealth) -> str:
    numbers = [str(number) for number, state in enumerate(gpu.links) if state not in _UP]
    return f" (not {', '.join(numbers)})" if numbers and _active(gpu) else ""


def _usual(facts: GpuHealthFacts) -> tuple[int, ...]:
    """Return how many links each GPU should have by its own node: as most others, unless it may have no bridge."""
    counts = Counter(map(_active, facts.gpus))
    most, times = counts.most_common(1)[0] if counts else (0, 0)
    clear = 2 * times > len(facts.gpus)
    return tuple(most if clear and _active(gpu) else _active(gpu) for gpu in facts.gpus)
