"""NVLinks have errors

## What it finds
GPUs whose NVLinks had to be trained again since the driver was loaded (recovery errors), or whose counts of CRC errors
and replays are above 1000 and ten times those of the usual GPU of this model. NVIDIA's DCGM takes each recovery for a
fault; single CRC errors and replays are normal. GPUs since Blackwell do not report these counts. GPUs of which the
fabric manager says that their bandwidth is degraded, a route is not healthy, or the fabric is configured wrongly count,
too (Hopper and newer).

## Why it matters
Each error is sent again: the link is slower, and every all-reduce waits for it. A link that is trained again may stay
down the next time; programs then end with Xid 74.

## What to type
`nvidia-smi nvlink -e` on the named node, twice during a job: counts that grow are a defective board, bridge or cable.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median_low

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.gpu_health import LINK_ERRORS, GpuHealth, GpuHealthFacts, unread_nodes

# Pairs of bits of NVML's fabric health mask: 1 is true, 2 is false, 0 is not supported. After them four bits with what
# is wrong with the configuration: 1 is nothing, 0 is not supported (NVML_GPU_FABRIC_HEALTH_MASK in nvml.h).
_FABRIC = {
    "the fabric's bandwidth is degraded": 0, "a route is recovering": 2, "a route is unhealthy": 4,
    "it recovers from accesses that timed out": 6,
}  # fmt: skip
_PAIR, _TRUE = 3, 1
_CONFIGURATION, _FOUR, _RIGHT = 8, 15, (0, 1)
_MANY, _TIMES = 1000, 10  # errors since the driver was loaded, and how many times as many as the usual GPU: our own


@cluster_check("NC530", Severity.WARNING, GpuHealthFacts, by_kind=True, alone=True)
def nvlink_errors(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    health = cluster.facts(GpuHealthFacts)
    yield from unread_nodes(health, "the errors of the NVLinks", "fields", *LINK_ERRORS, "fabric")
    counts = [_resent(gpu) for facts in health.values() for gpu in facts.gpus if gpu.link_errors]
    limit = max(_MANY, _TIMES * median_low(counts)) if counts else 0
    for node, facts in health.items():
        lines = tuple(line for gpu in facts.gpus if (line := _errors(gpu, limit)))
        if lines:
            message = f"NVLinks have errors: {lines[0]}"
            yield Problem(message, "nvidia-smi nvlink -e", lines, (node,), look=True, summary="NVLinks have errors")


def _resent(gpu: GpuHealth) -> int:
    return sum(count for name, count in gpu.link_errors.items() if name != "recovered")


def _errors(gpu: GpuHealth, limit: int) -> str:
    recovered, resent = gpu.link_errors.get("recovered", 0), _resent(gpu)
    found = [f"{recovered} times trained again"] if recovered else []
    found += [f"{resent} CRC errors and replays"] if resent > limit else []
    if gpu.fabric:
        found += [words for words, place in _FABRIC.items() if gpu.fabric.health >> place & _PAIR == _TRUE]
        wrong = gpu.fabric.health >> _CONFIGURATION & _FOUR
        found += [f"the fabric is configured wrongly (number {wrong} in nvml.h)"] if wrong not in _RIGHT else []
    return f"{gpu.called}: {', '.join(found)}" if found else ""
