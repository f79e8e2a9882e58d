"""A copy between two GPUs of a node is slow

## What it finds
Pairs of GPUs inside a node between which a copy is slower than between the same two of other nodes with these GPUs, or
than in the opposite direction, except across sockets without NVLink, where the two often differ: below 0.8 is an error,
below 0.92 a warning. The copies run one after the other, when no
GPU computes (`--gpu-test quick`).

## Why it matters
The ring of an all-reduce goes through all GPUs of a node and is as fast as its slowest link. One NVLink that is down,
or a path by the host where the others have NVLink, slows all of them.

## What to type
`nvidia-smi topo -m` on the node that the finding names shows how its GPUs are connected; compare it with another
node.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.topology import TopologyFacts
from ncheck.probe.gpu_test import SLOW_GPUS, GpuTestFacts
from ncheck.probe.gpus_alone import FAR_TOO_LOW, LOW

_NODES = 3  # with fewer, the opposite direction is what there is to compare with


@cluster_check(
    "NC754",
    Severity.ERROR,
    GpuTestFacts,
    also=(TopologyFacts,),
    by_kind=True,
    alone=True,
    explains=(SLOW_NETWORK, SLOW_GPUS),
    hardware=True,
)
def gpu_pair_slow(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    tested = cluster.facts(GpuTestFacts)
    rates = {node: {(one, other): rate for one, other, rate in facts.pairs} for node, facts in tested.items()}
    same: dict[tuple[int, int], list[float]] = {}
    for pairs in rates.values():
        for pair, rate in pairs.items():
            same.setdefault(pair, []).append(rate)
    medians = {pair: median(found) for pair, found in same.items() if len(found) >= _NODES}
    matrices = cluster.facts(TopologyFacts)
    for node, pairs in rates.items():
        if tested[node].words:
            yield Inconclusive(f"not all copies between two GPUs were measured: {tested[node].words}", (node,))
        elif not pairs:
            yield NotApplicable("one GPU alone has no pairs", (node,))
        low = []
        for pair, rate in pairs.items():
            path = matrices[node].pairs.get((f"GPU{pair[0]}", f"GPU{pair[1]}")) if node in matrices else None
            back = rate if path == "SYS" else pairs.get(pair[::-1], rate)
            usual = medians.get(pair) or max(*same[pair], back)
            if rate < LOW * usual:
                low.append((rate / usual, f"GPU {pair[0]} to GPU {pair[1]}: {rate:.3g} GB/s, usual {usual:.3g}"))
        if low:
            low.sort()
            yield Problem(
                f"slow copies between GPUs of {node}: {low[0][0]:.2f} of what is usual",
                tested[node].shown_by("nvidia-smi topo -p2p rw", "amd-smi topology"),
                tuple(text for _, text in low[:9]), (node,), look=True, summary="slow copies between GPUs",
                severity=None if low[0][0] < FAR_TOO_LOW else Severity.WARNING,
            )  # fmt: skip
