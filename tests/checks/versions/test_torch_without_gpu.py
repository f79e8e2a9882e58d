"""NC215: a torch that cannot use the GPUs of its node, where nothing else in the interpreter can."""

from __future__ import annotations

import pytest
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.interpreter import InterpreterFacts, TorchBuild
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.versions.torch_without_gpu import torch_without_gpu as check

from tests.checks.expected.nodes import said
from tests.checks.versions.pythons import PATH, python

GPUS = GpuFacts((Gpu(0, "NVIDIA H100 80GB HBM3"), Gpu(1, "NVIDIA H100 80GB HBM3")), "550.54", "12.4", "nvml")
CPU = TorchBuild("2.3.0+cpu")


def node(own: InterpreterFacts, gpus: GpuFacts | Absent = GPUS) -> dict[str, Facts]:
    return {"n1": {InterpreterFacts: own, GpuFacts: gpus}}


def test_a_cpu_build_on_a_node_with_gpus_is_a_warning() -> None:
    assert judge([check], node(python(CPU))).findings == [
        Finding("NC215", "torch-without-gpu", Severity.WARNING, ("n1",),
                f"torch 2.3.0+cpu of {PATH} is a CPU build, on a node with 2 NVIDIA GPUs", (),
                f"{PATH} -c 'import torch; print(torch.__version__, torch.version.cuda, torch.version.hip)'",
                kind="look", summary="torch cannot use the GPUs"),
    ]  # fmt: skip


def test_a_build_for_rocm_is_one_on_nvidias_gpus_too() -> None:
    rocm = TorchBuild("2.3.0+rocm6.0", hip="6.0.32830")
    assert said(judge([check], node(python(rocm)))) == (
        "failed", [f"torch 2.3.0+rocm6.0 of {PATH} is built for ROCm 6.0.32830, on a node with 2 NVIDIA GPUs"],
    )  # fmt: skip


def test_amds_gpus_need_a_build_for_rocm() -> None:
    amd = GpuFacts((Gpu(0, "AMD Instinct MI300X"),), "6.8.5", "", "amd-smi", rocm="6.2", vendor="AMD")
    assert said(judge([check], node(python(TorchBuild("2.3.0+rocm6.0", hip="6.0.32830")), amd))) == ("passed", [""])
    assert said(judge([check], node(python(TorchBuild("2.3.0+cu121", "12.1")), amd))) == (
        "failed", [f"torch 2.3.0+cu121 of {PATH} is built for CUDA 12.1, on a node with 1 AMD GPU"],
    )  # fmt: skip
    assert said(judge([check], node(python(CPU), amd))) == (
        "failed", [f"torch 2.3.0+cpu of {PATH} is a CPU build, on a node with 1 AMD GPU"],
    )  # fmt: skip


def test_it_is_silent_about_a_build_for_cuda() -> None:
    assert said(judge([check], node(python(TorchBuild("2.3.0+cu121", "12.1"))))) == ("passed", [""])


@pytest.mark.parametrize(
    ("own", "gpus", "outcome", "reason"),
    [
        (
            python(CPU, {"jax": "0.4.30"}),
            GPUS,
            "skipped",
            "torch has no CUDA or ROCm, and another framework may use the GPUs",
        ),
        (python(), GPUS, "skipped", "no torch"),
        (python(None, {"torch": "2.3.0"}), GPUS, "skipped", "torch does not say how it was built"),
        (python(CPU), Absent("no NVIDIA GPU"), "skipped", "no NVIDIA GPU"),
        (python(CPU), GpuFacts((), "550.54", "12.4", "nvml"), "skipped", "no GPU"),
    ],
)
def test_it_is_silent_where_torch_can_use_them_or_need_not(
    own: InterpreterFacts, gpus: GpuFacts | Absent, outcome: str, reason: str
) -> None:
    assert said(judge([check], node(own, gpus))) == (outcome, [reason])
