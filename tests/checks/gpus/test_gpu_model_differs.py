"""NC502: different GPU models are a warning."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_model_differs import gpu_model_differs

H100, T4 = "NVIDIA H100 80GB HBM3", "Tesla T4"


def node(*models: str) -> Facts:
    gpus = tuple(Gpu(index, model) for index, model in enumerate(models))
    return {GpuFacts: GpuFacts(gpus, "550.54", "12.4", "nvml") if gpus else Absent("no NVIDIA GPU")}


def test_a_node_of_another_model_is_named() -> None:
    assert judge([gpu_model_differs], {"n1": node(H100), "n2": node(H100), "n3": node(T4)}).findings == [
        Finding("NC502", "gpu-model-differs", Severity.WARNING, ("n3",),
                "the GPU model differs: NVIDIA H100 80GB HBM3 on n[1-2], Tesla T4 on n3 (2 to 1)", (), "nvidia-smi -L",
                kind="look", summary="the GPU model differs"),
    ]  # fmt: skip


def test_it_is_silent_about_two_models_that_every_node_has() -> None:
    assert judge([gpu_model_differs], {"n1": node(H100, T4), "n2": node(T4, H100)}).findings == []


def test_it_is_silent_about_a_node_without_gpus() -> None:
    judgement = judge([gpu_model_differs], {"n1": node(H100), "n2": node()})
    assert [verdict.outcome for verdict in judgement.verdicts] == [Outcome.PASSED, Outcome.SKIPPED]
