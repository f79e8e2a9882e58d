"""NVLinks have errors

## What it finds
GPUs whose NVLinks had to be trained again since the driver was loaded (recovery errors; up to Hopper), or were lost
because that failed (link recovery failed events; since Blackwell). NVIDIA's DCGM takes each of them for a failure
(MonitorNVLinkErrorFields in DcgmHealthWatch.cpp). Since Blackwell a link can recover by itself many times: DCGM warns
of that, and gpu-counters-stand-out reports a link that does it more than others, as it does for CRC errors, symbol
errors and replays. GPUs of which the fabric manager says that their bandwidth is degraded, a route is not healthy, or
the fabric is configured wrongly count, too (Hopper and newer). A GPU that counts the errors of some
of its active NVLinks only is unknown.

## Why it matters
Each error is sent again: the link is slower, and every all-reduce waits for it. A link that is trained again may stay
down the next time; programs then end with Xid 74, or 149 since Blackwell.

## What to type
`nvidia-smi nvlink -e` on the named node, twice during a job: counts that grow are a defective board, bridge or cable.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import Inconclusive, NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.gpu_health import LINK_ERRORS, NVLINK_FAULT, GpuHealth, GpuHealthFacts, LinkCounters, nothing_to_judge

# Pairs of bits of NVML's fabric health mask: 1 is true, 2 is false, 0 is not supported. After them four bits with what
# is wrong with the configuration: 1 is nothing, 0 is not supported (NVML_GPU_FABRIC_HEALTH_MASK in nvml.h).
_FABRIC = {
    "the fabric's bandwidth is degraded": 0, "a route is recovering": 2, "a route is unhealthy": 4,
    "it recovers from accesses that timed out": 6,
}  # fmt: skip
_PAIR, _TRUE = 3, 1
_CONFIGURATION, _FOUR, _RIGHT = 8, 15, (0, 1)
_NONE = LinkCounters(read=0)


@node_check("NC530", Severity.WARNING, GpuHealthFacts, explains=NVLINK_FAULT, hardware=True)
def nvlink_errors(node: NodeView) -> Iterator[Problem | Inconclusive | NotApplicable]:
    facts = node[GpuHealthFacts]
    lines = tuple(f"{gpu.called}: {', '.join(found)}" for gpu in facts.gpus if (found := [*_errors(gpu)]))
    if lines:
        message = f"NVLinks have errors: {lines[0]}"
        yield Problem(message, "nvidia-smi nvlink -e", lines, look=True, summary="NVLinks have errors")
    yield from nothing_to_judge(facts, "errors of NVLinks", _known, "fields", *LINK_ERRORS, "counted", "fabric")
    for gpu in facts.gpus:
        counted = gpu.counted or _NONE
        if not gpu.active_links or gpu.mig or "recovered" in gpu.link_errors or counted.read == gpu.active_links:
            continue
        if gpu.counted == _NONE and "counted" not in gpu.errors:
            yield NotApplicable(f"the driver has no error counters of the NVLinks of {gpu.called}: not supported")
        elif counted.refused:
            yield NotApplicable(f"only root can read the error counters of the NVLinks of {gpu.called}")
        else:
            links = f"{counted.read} of {gpu.active_links} active NVLinks"
            yield Inconclusive(f"{gpu.called} reports the error counters of {links}")


def _known(gpu: GpuHealth) -> object:
    return gpu.link_errors or gpu.fabric or (gpu.counted and gpu.counted.read) or None


def _errors(gpu: GpuHealth) -> Iterator[str]:
    links = gpu.counted.errors if gpu.counted else {}
    if recovered := gpu.link_errors.get("recovered") or sum(errors.get("recovered", 0) for errors in links.values()):
        yield f"{recovered} times trained again"
    for link, errors in links.items():
        if lost := errors.get("lost"):
            yield f"link {link} was lost {lost} times"
    if gpu.fabric:
        yield from (words for words, place in _FABRIC.items() if gpu.fabric.health >> place & _PAIR == _TRUE)
        wrong = gpu.fabric.health >> _CONFIGURATION & _FOUR
        if wrong not in _RIGHT:
            yield f"the fabric is configured wrongly (number {wrong} in nvml.h)"
