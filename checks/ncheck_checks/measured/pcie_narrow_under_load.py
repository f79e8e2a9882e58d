"""The PCIe link of a GPU is slower or narrower than it can be, under load

## What it finds
GPUs that have fewer PCIe lanes than they can use, or an older PCIe generation, while they are busy. At rest a GPU
lowers the generation of its link by itself, so only what was read under load counts (`--gpu-test quick`). Where all
GPUs of the model in this cluster are alike, the boards are wired so, and it is no finding.

## Why it matters
Everything that comes from the host, and without GPUDirect RDMA from other nodes, goes through this link. Half the lanes
are half the bandwidth. A card that is not well seated, a riser or a slot are the usual causes.

## What to type
`sudo lspci -vv -d 10de:` on the node that the finding names shows LnkCap (what the link can) and LnkSta (what it
has).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.gpus import GpuFacts
from ncheck.probe.gpu_test import SLOW_GPUS, SLOW_NODE, GpuTestFacts, TestedGpu
from ncheck.probe.gpus_alone import fold_pci, tested, unwatched


@cluster_check(
    "NC756",
    Severity.ERROR,
    GpuTestFacts,
    also=(GpuFacts,),
    alone=True,
    explains=(SLOW_NETWORK, SLOW_GPUS, SLOW_NODE),
    hardware=True,
)
def pcie_narrow_under_load(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    links: dict[str, set[tuple[int, int]]] = {}
    for _, gpu, model in tested(cluster):
        if link := _link(gpu):
            links.setdefault(model, set()).add(link)
    best = {model: max(found) for model, found in links.items()}
    narrow: dict[str, list[TestedGpu]] = {}
    for node, gpu, model in tested(cluster):
        link = _link(gpu)
        if link and link < best[model] and link != _most(gpu):
            narrow.setdefault(node, []).append(gpu)
    for node, facts in cluster.facts(GpuTestFacts).items():
        yield from (replace(one, nodes=(node,)) for one in unwatched(facts.gpus))
    for node, gpus in narrow.items():
        yield Problem(
            _message(node, gpus),
            cluster.facts(GpuTestFacts)[node].shown_by("sudo lspci -vv -d 10de:", "sudo lspci -vv -d 1002:"),
            tuple(f"{gpu.pci}: {_text(gpu)}" for gpu in gpus), (node,), look=True,
            summary="a GPU has a slow PCIe link under load",
        )  # fmt: skip


def _link(gpu: TestedGpu) -> tuple[int, int] | None:
    """Return the most lanes and the latest generation that were seen under load."""
    seen = [(look.width, look.generation) for look in gpu.looks if look.width and look.generation]
    return max(seen) if seen else None


def _most(gpu: TestedGpu) -> tuple[int, int] | None:
    able = [(look.most_width, look.most_generation) for look in gpu.looks if look.most_width and look.most_generation]
    return max(able) if able else None


def _message(node: str, gpus: Sequence[TestedGpu]) -> str:
    texts = {_text(gpu) for gpu in gpus}
    run = f"under load, the PCIe link{'s' * (len(gpus) > 1)} of {fold_pci(gpus)} of {node} run{'s' * (len(gpus) == 1)}"
    return f"{run} at {texts.pop()}" if len(texts) == 1 else f"{run} at less than they can do"


def _text(gpu: TestedGpu) -> str:
    (width, generation), most = _link(gpu) or (0, 0), _most(gpu)
    able = f"; it can do x{most[0]} of generation {most[1]}" if most else ""
    return f"x{width} of generation {generation}{able}"
