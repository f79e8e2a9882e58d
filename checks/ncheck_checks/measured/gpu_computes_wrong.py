"""A GPU computes wrong results

## What it finds
GPUs that compute something else than the other GPUs of their model, or than they computed seconds earlier, when they
were colder; and GPUs whose own processors disagree. A GPU that agrees with all of these, and differs from what exact
arithmetic gives, is a warning only: so far no real GPU was compared with that. Each GPU runs two kernels, one of whole
numbers and one of single-precision numbers, in which every block computes the same (`--gpu-test quick`).

## Why it matters
Nothing fails and no counter counts it: the model is trained with wrong numbers, and its loss shows it weeks later or
never.

## What to type
The command of the finding, on the node that it names, shows the memory errors of the GPU. Train without the node:
`ncheck plan nodes.txt --drop-bad`. Test again, for longer: `ncheck probe nodes.txt --gpu-test long`. A GPU that is
wrong twice has to be replaced; the finding has its serial number, UUID and PCI address for the vendor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ncheck import Cluster, Inconclusive, Problem, Severity, cluster_check
from ncheck.facts.gpus import GpuFacts
from ncheck.probe.gpu_test import EXACT, KERNELS, WRONG_SUMS, GpuTestFacts, TestedGpu
from ncheck.probe.gpus_alone import fold_pci, tested

Faults = dict[str, list[tuple[TestedGpu, str]]]  # by node: a GPU, and why


@cluster_check(
    "NC750",
    Severity.ERROR,
    GpuTestFacts,
    also=(GpuFacts,),
    alone=True,
    explains=WRONG_SUMS,
    hardware=True,
    next_step="ticket",
)
def gpu_computes_wrong(cluster: Cluster) -> Iterator[Problem | Inconclusive]:
    computed: dict[tuple[str, str], Counter[str]] = {}
    for _, gpu, model in tested(cluster):
        for kernel in KERNELS:
            computed.setdefault((model, kernel), Counter()).update(set(_digests(gpu, kernel)))
    wrong: Faults = {}
    inexact: Faults = {}
    silent: dict[str, list[TestedGpu]] = {}
    for node, gpu, model in tested(cluster):
        if whys := [why for kernel in KERNELS if (why := _why(gpu, kernel, computed[model, kernel]))]:
            wrong.setdefault(node, []).append((gpu, "; ".join(whys)))
        elif whys := [why for kernel in KERNELS if (why := _inexact(gpu, kernel))]:
            inexact.setdefault(node, []).append((gpu, "; ".join(whys)))
        elif not all(f"{kernel} again" in gpu.results for kernel in KERNELS):
            silent.setdefault(node, []).append(gpu)
    yield from _named(cluster, wrong, "wrong results on {} of {}", "a GPU computes wrong results", None)
    yield from _named(
        cluster, inexact, "the results of {} of {} differ from IEEE arithmetic", "a GPU differs from IEEE arithmetic",
        Severity.WARNING,
    )  # fmt: skip
    for node, unknown in silent.items():
        if node not in wrong:
            yield Inconclusive(f"{fold_pci(unknown)}: {_untested(unknown[0])}", (node,))


def _named(
    cluster: Cluster, faults: Faults, message: str, summary: str, severity: Severity | None
) -> Iterator[Problem]:
    for node, gpus in faults.items():
        yield Problem(
            message.format(fold_pci(gpu for gpu, _ in gpus), node),
            cluster.facts(GpuTestFacts)[node].shown_by("nvidia-smi -q -d ECC,ROW_REMAPPER"),
            tuple(f"{gpu.pci} ({gpu.known_by}): {why}" for gpu, why in gpus), (node,), look=True, summary=summary,
            severity=severity,
        )  # fmt: skip


def _untested(gpu: TestedGpu) -> str:
    return gpu.trouble or "; ".join(gpu.notes) or "it computed nothing"


def _digests(gpu: TestedGpu, kernel: str) -> tuple[str, ...]:
    """Return what it computed, when cold and when warm, as far as it came."""
    return tuple(gpu.results[name][0] for name in (kernel, f"{kernel} again") if name in gpu.results)


def _inexact(gpu: TestedGpu, kernel: str) -> str:
    other = next((digest for digest in _digests(gpu, kernel) if digest != EXACT[kernel]), "")
    return f"{kernel}: {other}; exact arithmetic gives {EXACT[kernel]}" if other else ""


def _why(gpu: TestedGpu, kernel: str, computed: Counter[str]) -> str:
    """Return what is wrong; "" where nothing is. Where as many GPUs say one thing as another, all of them are named."""
    blocks = max((gpu.results[name][1] for name in (kernel, f"{kernel} again") if name in gpu.results), default=0)
    if blocks:
        return f"{kernel}: {blocks} of 4096 blocks differ from the others on the same GPU"
    digests = _digests(gpu, kernel)
    if len(set(digests)) > 1:
        return f"{kernel}: {digests[0]} when cold, {digests[1]} when warm"
    most = [digest for digest, count in computed.items() if count == max(computed.values())]
    if not digests or most == [digests[0]]:
        return ""
    others = sorted(digest for digest in computed if digest != digests[0])
    return f"{kernel}: {digests[0]}; other GPUs of this model: {', '.join(others)}" if others else ""
