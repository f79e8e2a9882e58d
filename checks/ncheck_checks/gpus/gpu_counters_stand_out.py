"""A GPU or NVLink has counted far more errors than others

## What it finds
GPUs whose PCIe replays, NVLink CRC errors or NVLink replays stand out among the GPUs of the same model, and NVLinks
(Hopper and newer) whose CRC errors, replays, recoveries, symbol errors, local link integrity errors, malformed packets
or packets that were received with errors do, by what was counted since the node was started. All of these are normal in
small numbers; what NVIDIA takes for a failure at once is reported by nvlink-errors.

There is no fixed limit. A count stands out if its part of the sum of all, in total and per day, has a chance below 1 in
2,000 in a healthy cluster, where the rates may differ much (a gamma distribution of shape 1/2; our own choice). GPUs
with the same number are compared by themselves, too. Fewer than 10 recoveries or 100 errors never stand out, and a
count that many GPUs have does not.

## Why it matters
A link that counts more than all others is often named by its counters days before it fails: one NVLink of 5,760 that
had recovered 505 times went down five days later, and 64 GPUs with it (marin-community/marin, issue 9086).

## What to type
`nvidia-smi nvlink -e` or `nvidia-smi -q` on the named node, twice during a job: counts that grow are a defective board,
bridge, cable or slot. Reset the GPU between two jobs, or have the node examined before it joins the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ncheck import Cluster, Inconclusive, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.error_counters import ErrorCountersFacts
from ncheck.facts.gpu_health import LINK_ERRORS, NVLINK_FAULT, GpuHealthFacts, unread_nodes
from ncheck.outliers import ERRORS, EVENTS, Outlier, Series

_OF_LINKS = {
    "crc": ERRORS, "replay": ERRORS, "symbol": ERRORS, "malformed": ERRORS, "received": ERRORS, "integrity": EVENTS,
    "recoveries": EVENTS,
}  # fmt: skip
_OF_GPUS = {"flit_crc": ERRORS, "data_crc": ERRORS, "replay": ERRORS}
_OF_PCIE = {"pcie_replays": ERRORS}
_WORDS = {
    "crc": "CRC errors", "replay": "NVLink replays", "symbol": "symbol errors", "malformed": "malformed packets",
    "received": "packets with errors", "integrity": "link integrity errors", "recoveries": "link recoveries",
    "flit_crc": "NVLink flit CRC errors", "data_crc": "NVLink data CRC errors", "pcie_replays": "PCIe replays",
}  # fmt: skip


@cluster_check("NC548", Severity.WARNING, GpuHealthFacts, ErrorCountersFacts, by_kind=True, alone=True, hardware=True)
def gpu_counters_stand_out(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    health = cluster.facts(GpuHealthFacts)
    yield from unread_nodes(health, "the error counters", "fields", *LINK_ERRORS, "counted", "pcie_replays")
    links, gpus, pcie = Series(_OF_LINKS), Series(_OF_GPUS), Series(_OF_PCIE)
    for node, facts in health.items():
        for gpu in facts.gpus:
            name = f"GPU {gpu.index}"
            if gpu.counted and gpu.counted.read:
                errors = {f"NVLink {link}": counts for link, counts in gpu.counted.errors.items()}
                links.add(node, name, errors, gpu.counted.read)
            elif gpu.link_errors:
                gpus.add(node, name, {"": gpu.link_errors})
            if gpu.pcie_replays is not None:
                pcie.add(node, name, {"": {"pcie_replays": gpu.pcie_replays}})
    if not (links.comparable or gpus.comparable or pcie.comparable):
        yield NotApplicable("too few GPUs of this model count errors to compare them")
    days = {node: facts.days for node, facts in cluster.facts(ErrorCountersFacts).items()}
    yield from _problems((*links.outliers(days), *gpus.outliers(days)), "nvidia-smi nvlink -e", NVLINK_FAULT)
    yield from _problems(pcie.outliers(days), "nvidia-smi -q | grep -E '^GPU|Replay'")


def _problems(found: Iterable[Outlier], look: str, follows: str = "") -> Iterator[Problem]:
    """Yield a problem for each node on which something stands out."""
    by_node: dict[str, list[Outlier]] = {}
    for outlier in found:
        by_node.setdefault(outlier.place[0], []).append(outlier)
    for node, here in by_node.items():
        message, *evidence = (outlier.line(_WORDS[outlier.counter]) for outlier in here)
        summary = f"{here[0].name} has counted far more errors than others"
        yield Problem(message, look, tuple(evidence), (node,), look=True, summary=summary, follows=follows)
