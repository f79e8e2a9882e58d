"""GPUDirect RDMA is missing

## What it finds
Nodes with an NVIDIA GPU and an Active InfiniBand or RoCE port, which a job can use, beneath one PCIe switch, on which
NCCL would not use GPUDirect RDMA. ncheck looks where NCCL looks (net_ib/gdr.cc), not at lsmod: nv_mem or nv_mem_nc in
/sys/kernel/mm/memory_peers, the version of nvidia_peermem (NCCL 2.23.4 and newer look for it), or DMA-BUF: Linux 5.12
and NVIDIA's open kernel module. Where GPUs and adapters are not beneath one switch, NCCL goes through the processor
anyway, and nothing is reported. GeForce cards have no GPUDirect RDMA and are left out.

## Why it matters
All data between nodes is copied to the memory of the processor and from there to the adapter. It takes the same PCIe
switch twice, so about half of the speed is lost with one adapter per GPU, and more where the memory of the processor is
the limit: in NCCL's issue 1676 two nodes fell from 180 to 10 GB/s. If it is missing on some nodes only, all ranks wait
for those. Nothing fails: NCCL_DEBUG=INFO prints "GPU Direct RDMA Disabled for HCA 0 'mlx5_0'".

## What to type
`sudo modprobe nvidia_peermem`; `echo nvidia_peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf` for the next
boot. "Invalid argument" means that it was built without the symbols of the network driver: install MLNX_OFED or DOCA
first and the GPU driver again after it, or the driver with open kernel modules, which needs no nvidia_peermem.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import SLOW_NETWORK, Cluster, Inconclusive, NodeView, NotApplicable, Problem, Severity, cluster_check, fold
from ncheck.facts.gpudirect import GpuDirectFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import InfinibandFacts
from ncheck.facts.libraries import LibraryFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.pci import PciFacts
from ncheck.parity import nodes_by_value
from ncheck.topology.nearness import near_pairs, places_unread

_LEGACY = {"nv_mem", "nv_mem_nc"}
_DMA_BUF = (5, 12)
_LOOKS_FOR_PEERMEM = (2, 23, 4)
_LOAD = "sudo modprobe nvidia_peermem"
_UPGRADE = "python3 -m pip install 'nvidia-nccl-cu12>=2.23.4'"
_NOT_SURE = "nvidia_peermem is not loaded, and Linux before 5.12 has no DMA-BUF for RDMA, unless it was added to it"


@cluster_check(
    "NC433", Severity.WARNING, GpuDirectFacts, InfinibandFacts,
    also=(PciFacts, LoadedNcclFacts, GpuFacts, LibraryFacts), explains=SLOW_NETWORK,
)  # fmt: skip
def gpudirect_missing(cluster: Cluster) -> Iterator[Problem | Inconclusive | NotApplicable]:
    unread = {node.name: reason for node in cluster if (reason := places_unread(node))}
    for reason, nodes in nodes_by_value(unread).items():
        yield Inconclusive(reason, nodes)
    near = {node.name: near_pairs(node) for node in cluster if _supported(node)}
    lacking = {name: _lacking(cluster[name]) for name, pairs in near.items() if pairs}
    if others := tuple(name for name in cluster.names if name not in lacking and name not in unread):
        yield NotApplicable(
            "no GPU for GPUDirect RDMA beneath one PCIe switch with an InfiniBand or RoCE port that a job can use",
            others,
        )
    able = [name for name, why in lacking.items() if not why]
    for why, nodes in nodes_by_value({name: why for name, why in lacking.items() if why}).items():
        if why == _NOT_SURE:
            yield NotApplicable(why, nodes)
            continue
        gpu, adapter = near[nodes[0]][0]
        yield Problem(
            f"no GPUDirect RDMA{f', as {fold(able)} has it' if able else ''}: {why}",
            _LOAD if why.startswith("nvidia_peermem") else _UPGRADE,
            (f"{nodes[0]}: GPU {gpu.address} and adapter {adapter.address} are beneath one PCIe switch",),
            nodes, summary="no GPUDirect RDMA",
        )  # fmt: skip


def _supported(node: NodeView) -> bool:
    gpus = node.maybe(GpuFacts)
    return not isinstance(gpus, GpuFacts) or not all("GeForce" in model for model in gpus.models)


def _lacking(node: NodeView) -> str:
    """Return why NCCL would not use it; "" where it would."""
    facts, nccl = node[GpuDirectFacts], node.maybe(LoadedNcclFacts)
    if _LEGACY & {*facts.peers} or (facts.open_driver and facts.kernel >= _DMA_BUF):
        return ""
    if facts.peermem:
        version = nccl.version if isinstance(nccl, LoadedNcclFacts) else ""
        old = version and tuple(int(part) for part in version.split(".") if part.isdecimal()) < _LOOKS_FOR_PEERMEM
        return (
            f"NCCL {version} looks only into /sys/kernel/mm/memory_peers (since 2.23.4 also elsewhere)" if old else ""
        )
    if facts.open_driver:
        return _NOT_SURE
    return "nvidia_peermem is not loaded, and the driver is not the open one, which DMA-BUF needs"
