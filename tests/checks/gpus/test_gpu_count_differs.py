"""NC501: GPUs are counted within a model, and a node without any fails where others have some."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_count_differs import gpu_count_differs

H100, T4 = "NVIDIA H100 80GB HBM3", "Tesla T4"


def node(count: int, model: str = H100) -> Facts:
    gpus = tuple(Gpu(index, model) for index in range(count))
    return {GpuFacts: GpuFacts(gpus, "550.54", "12.4", "nvml") if gpus else Absent("no NVIDIA GPU")}


def test_a_node_with_fewer_gpus_is_named() -> None:
    assert judge([gpu_count_differs], {"n1": node(8), "n2": node(8), "n3": node(7)}).findings == [
        Finding("NC501", "gpu-count-differs", Severity.ERROR, ("n3",),
                "the number of GPUs (NVIDIA H100 80GB HBM3) differs: 8 on n[1-2], 7 on n3 (2 to 1)",
                (), "nvidia-smi -L", kind="look", summary="the number of GPUs differs"),
    ]  # fmt: skip


def test_of_two_nodes_that_differ_both_are_named() -> None:
    assert [found.nodes for found in judge([gpu_count_differs], {"n1": node(8), "n2": node(7)}).findings] == [
        ("n1", "n2")
    ]


def test_a_node_without_any_fails_where_others_have_some() -> None:
    judgement = judge([gpu_count_differs], {"n1": node(8), "n2": node(0)})
    assert [(found.nodes, found.message) for found in judgement.findings] == [(("n2",), "no NVIDIA GPU, and n1 has it")]


def test_a_node_whose_driver_is_silent_is_unknown() -> None:
    judgement = judge(
        [gpu_count_differs], {"n1": node(8), "n2": node(8), "n3": {GpuFacts: Unread("nvidia-smi failed")}}
    )
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.PASSED, Outcome.UNKNOWN]


def test_it_is_silent_where_each_model_has_its_own_count() -> None:
    nodes = {"n1": node(8), "n2": node(8), "n3": node(1, T4), "n4": node(1, T4)}
    assert judge([gpu_count_differs], nodes).findings == []


def test_it_is_silent_and_skipped_where_no_node_has_a_gpu() -> None:
    judgement = judge([gpu_count_differs], {"n1": node(0), "n2": node(0)})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.SKIPPED, Outcome.SKIPPED]
