"""NC433: GPUDirect RDMA as NCCL looks for it, where a GPU and an adapter share a PCIe switch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.facts.gpudirect import GpuDirectFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.infiniband import HcaPort, InfinibandFacts
from ncheck.facts.libraries import NO_HCA, LibraryFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.pci import MELLANOX, NVIDIA, PciDevice, PciFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.infiniband.gpudirect_missing import gpudirect_missing

CHECK = [gpudirect_missing]
ROOT, PORT, SWITCH = "pci0000:15", "0000:15:01.0", "0000:16:00.0"
GPU = PciDevice("0000:18:00.0", 0x0302, NVIDIA, 0x2330, above=(ROOT, PORT, SWITCH, "0000:17:00.0"))
HCA = PciDevice("0000:19:00.0", 0x0207, MELLANOX, 0x1021, above=(ROOT, PORT, SWITCH, "0000:17:01.0"))
ACTIVE = HcaPort("mlx5_0", 1, "Active", "LinkUp", 400, "InfiniBand", pci=HCA.address)
NONE = GpuDirectFacts((), peermem=False, open_driver=False, kernel=(5, 15))
LEGACY = GpuDirectFacts(("nv_mem",), peermem=True, open_driver=False, kernel=(5, 15))
PEERMEM = replace(NONE, peermem=True)
DMA_BUF = replace(NONE, open_driver=True)


def node(
    facts: object, *, nccl: str = "2.27.5", hca: PciDevice = HCA, port: HcaPort = ACTIVE, gpu: str = "H100"
) -> Facts:
    return {
        GpuDirectFacts: facts,
        InfinibandFacts: InfinibandFacts((port,), "sysfs"),
        PciFacts: PciFacts((GPU, hca)),
        LibraryFacts: LibraryFacts("", NO_HCA),
        LoadedNcclFacts: LoadedNcclFacts(nccl, "/usr/lib/libnccl.so.2"),
        GpuFacts: GpuFacts((Gpu(0, gpu, "GPU-0", GPU.address),), "550.54", "12.4", "nvml"),
    }


def test_a_node_without_it_is_named_and_who_has_it() -> None:
    assert judge(CHECK, {"n1": node(LEGACY), "n2": node(PEERMEM), "n3": node(DMA_BUF), "n4": node(NONE)}).findings == [
        Finding("NC433", "gpudirect-missing", Severity.WARNING, ("n4",),
                "no GPUDirect RDMA, as n[1-3] has it: "
                "nvidia_peermem is not loaded, and the driver is not the open one, which DMA-BUF needs",
                ("n4: GPU 0000:18:00.0 and adapter 0000:19:00.0 are beneath one PCIe switch",),
                "sudo modprobe nvidia_peermem", summary="no GPUDirect RDMA"),
    ]  # fmt: skip


def test_nodes_that_all_lack_it_are_named_together() -> None:
    (found,) = judge(CHECK, {"n1": node(NONE), "n2": node(NONE)}).findings
    assert (found.nodes, found.message.partition(":")[0]) == (("n1", "n2"), "no GPUDirect RDMA")


def test_an_old_nccl_does_not_look_for_nvidia_peermem() -> None:
    (found,) = judge(CHECK, {"n1": node(PEERMEM, nccl="2.21.5"), "n2": node(PEERMEM)}).findings
    assert (found.nodes, found.fix) == (("n1",), "python3 -m pip install 'nvidia-nccl-cu12>=2.23.4'")
    assert judge(CHECK, {"n1": node(LEGACY, nccl="2.21.5"), "n2": node(DMA_BUF, nccl="2.21.5")}).findings == []


def test_a_kernel_that_may_have_dma_buf_is_skipped() -> None:
    judgement = judge(CHECK, {"n1": node(replace(DMA_BUF, kernel=(4, 18))), "n2": node(LEGACY)})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED, Outcome.PASSED]


@pytest.mark.parametrize(
    "other",
    [
        node(
            NONE, hca=replace(HCA, above=(ROOT, "0000:15:02.0"))
        ),  # a root port of its own: NCCL goes by the processor
        node(NONE, hca=replace(HCA, above=(ROOT,))),
        node(NONE, port=replace(ACTIVE, state="Down")),
        node(NONE, port=replace(ACTIVE, link_layer="Unspecified")),  # EFA has its own
        node(NONE, gpu="NVIDIA GeForce RTX 4090"),
        {**node(NONE), PciFacts: PciFacts((HCA,))},
        {**node(NONE), LibraryFacts: LibraryFacts("libibverbs.so.1: no such file", NO_HCA)},  # a job uses TCP
        {**node(NONE), GpuDirectFacts: Absent("no NVIDIA driver is loaded")},
    ],
)
def test_it_is_silent_where_nccl_would_not_use_it_anyway(other: Facts) -> None:
    judgement = judge(CHECK, {"n1": other, "n2": other})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED] * 2


def test_an_adapter_whose_place_is_not_known_is_unknown() -> None:
    no_bus = {**node(NONE), PciFacts: Absent("no PCI bus")}
    judgement = judge(CHECK, {"n1": no_bus, "n2": {**no_bus, PciFacts: Unread("lost")}})
    assert [verdict.reason for verdict in judgement.verdicts] == [
        "mlx5_0 is on the PCI bus, which could not be read", "lost",
    ]  # fmt: skip


def test_what_could_not_be_read_is_unknown() -> None:
    judgement = judge(
        CHECK, {"n1": {**node(NONE), GpuDirectFacts: Unread("lost")}, "n2": node(LEGACY), "n3": node(LEGACY)}
    )
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.UNKNOWN, Outcome.PASSED, Outcome.PASSED]
