"""NC504: paths are compared pair by pair, NICs by the name of their device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.topology import BUS_AND_NVML, TopologyFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity, Verdict
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.gpus.nvlink_missing import nvlink_missing
from ncheck_checks.gpus.topology_differs import topology_differs

from . import matrices

LEGEND = {"NIC0": "mlx5_0"}


def node(
    gpu_0_1: str, gpu_0_2: str = "NV12", nics: Mapping[str, str] | None = None, legend: Mapping[str, str] = LEGEND
) -> Facts:
    """Make three GPUs; `nics` maps a NIC to the path from GPU0."""
    nics = {"NIC0": "PIX"} if nics is None else nics
    pairs = {("GPU0", "GPU1"): gpu_0_1, ("GPU0", "GPU2"): gpu_0_2, ("GPU1", "GPU2"): "NV12", ("GPU0", "GPU0"): "X"}
    pairs |= {(column, row): level for (row, column), level in pairs.items()}
    for nic, level in nics.items():
        pairs |= {("GPU0", nic): level, (nic, "GPU0"): level}
    topology = TopologyFacts(("GPU0", "GPU1", "GPU2"), tuple(nics), pairs, legend, {}, {})
    gpus = tuple(Gpu(index, "NVIDIA A100-SXM4-80GB") for index in range(3))
    return {TopologyFacts: topology, GpuFacts: GpuFacts(gpus, "550.54", "12.4", "nvml")}


def test_the_differing_pairs_are_reported_with_the_deviating_node() -> None:
    judgement = judge([topology_differs], {"n1": node("NV12"), "n2": node("NV12"), "n3": node("SYS", "PHB")})
    message = "GPU0 to GPU1: NV12 (12 NVLinks) on n[1-2], SYS (the link between the CPUs) on n3 (2 to 1), and 1 more"
    evidence = ("GPU0 to GPU1: NV12 on n[1-2], SYS on n3 (2 to 1)", "GPU0 to GPU2: NV12 on n[1-2], PHB on n3 (2 to 1)")
    assert judgement.findings == [
        Finding("NC504", "topology-differs", Severity.ERROR, ("n3",), message, evidence, "lspci -tv",
                kind="look", summary="the GPU topology differs"),
    ]  # fmt: skip


def test_paths_of_one_device_that_differ_alike_are_one_sentence() -> None:
    nodes = {"n1": node("NV12"), "n2": node("NV12"), "n3": node("SYS", "SYS")}
    assert [found.message for found in judge([topology_differs], nodes).findings] == [
        "GPU0 to GPU1, GPU2: NV12 (12 NVLinks) on n[1-2], SYS (the link between the CPUs) on n3 (2 to 1)",
    ]


def test_a_nic_behind_another_path_is_named_by_its_device() -> None:
    nodes = {"n1": node("NV12"), "n2": node("NV12"), "n3": node("NV12", nics={"mlx5_0": "SYS"}, legend={})}
    assert [found.message for found in judge([topology_differs], nodes).findings] == [
        "GPU0 to mlx5_0: PIX (one PCIe switch) on n[1-2], SYS (the link between the CPUs) on n3 (2 to 1)",
    ]


def test_paths_that_differ_only_between_sources_are_unknown() -> None:
    """nvidia-smi says SYS within a NUMA node on some boards."""
    other = node("NODE")
    topology = other[TopologyFacts]
    assert isinstance(topology, TopologyFacts)
    computed: Facts = {**other, TopologyFacts: replace(topology, source=BUS_AND_NVML)}
    judgement = judge([topology_differs], {"n1": node("SYS"), "n2": node("SYS"), "n3": computed})
    assert judgement.findings == []
    assert [one.outcome for one in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED, Outcome.UNKNOWN]
    both = judge([topology_differs], {"n1": node("SYS"), "n2": node("NODE"), "n3": computed, "n4": computed})
    assert [found.nodes for found in both.findings] == [("n1",)]


def test_of_two_nodes_that_differ_both_are_named() -> None:
    assert [found.nodes for found in judge([topology_differs], {"n1": node("NV12"), "n2": node("SYS")}).findings] == [
        ("n1", "n2")
    ]


def test_it_is_silent_where_one_driver_prints_a_legend_and_another_the_names() -> None:
    nodes = {"n1": node("NV12"), "n2": node("NV12", nics={"mlx5_0": "PIX"}, legend={})}
    assert judge([topology_differs], nodes).findings == []


def test_it_is_silent_where_some_nodes_print_no_nics() -> None:
    assert judge([topology_differs], {"n1": node("NV12"), "n2": node("NV12", nics={})}).findings == []


def test_a_matrix_with_fewer_gpus_than_the_node_has_is_unknown() -> None:
    one_row = {**node("NV12"), TopologyFacts: TopologyFacts(("GPU0",), (), {("GPU0", "GPU0"): "X"}, {}, {}, {})}
    judgement = judge([topology_differs], {"n1": node("NV12"), "n2": one_row, "n3": node("NV12")})
    assert judgement.verdicts[1] == Verdict(
        "topology-differs", "NC504", ("n2",), Outcome.UNKNOWN, "nvidia-smi shows 1 of the node's 3 GPUs"
    )


def test_it_is_silent_about_nodes_without_a_matrix() -> None:
    absent: Facts = {TopologyFacts: Absent("nvidia-smi: not there"), GpuFacts: Absent("no NVIDIA GPU")}
    unread: Facts = {**node("NV12"), TopologyFacts: Unread("cut off")}
    judgement = judge([topology_differs], {"n1": node("NV12"), "n2": absent, "n3": unread, "n4": node("NV12")})
    passed = Outcome.PASSED
    assert [one.outcome for one in judgement.verdicts] == [passed, Outcome.SKIPPED, Outcome.UNKNOWN, passed]


def test_a_node_whose_own_nvlinks_are_uneven_refers_to_that_finding() -> None:
    well, sick = matrices.node(8, "NV18"), matrices.node(8, "NV18", matrices.without(3, 8))
    found = judge([nvlink_missing, topology_differs], {"n1": well, "n2": well, "n3": sick}).findings
    assert [(one.code, one.nodes, one.see) for one in found] == [("NC508", ("n3",), ()), ("NC504", ("n3",), ("NC508",))]
    assert found[1].message == (
        "GPU3 to GPU0, GPU1, GPU2 and 4 more: NV18 (18 NVLinks) on n[1-2],"
        " SYS (the link between the CPUs) on n3 (2 to 1)"
    )
