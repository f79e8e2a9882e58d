"""NC902: GPUs of another model than the expected one are named."""

from __future__ import annotations

from typing import Any

from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.expected.gpu_model_unexpected import gpu_model_unexpected as check

from tests.checks.expected.nodes import said


def gpus(*models: str) -> GpuFacts:
    return GpuFacts(tuple(Gpu(at, model) for at, model in enumerate(models)), "550.54", "12.4", "nvml")


def node(fact: object, **expected: Any) -> dict[str, Facts]:
    return {"n1": {ExpectedFacts: ExpectedFacts(**expected), GpuFacts: fact}}


def test_each_other_model_is_named() -> None:
    mixed = gpus("NVIDIA H100 80GB HBM3", "Tesla T4")
    assert said(judge([check], node(mixed, gpu="h100"))) == ("failed", ["Tesla T4, expected h100"])
    assert said(judge([check], node(Absent("none"), gpu="H100"))) == ("failed", ["no NVIDIA GPU, expected H100"])


def test_what_could_not_be_read_is_unknown() -> None:
    assert said(judge([check], node(Unread("NVML hangs"), gpu="H100"))) == ("unknown", ["NVML hangs"])


def test_it_is_silent_where_all_are_of_the_model_or_none_is_expected() -> None:
    assert said(judge([check], node(gpus("NVIDIA H100 80GB HBM3"), gpu="H100"))) == ("passed", [""])
    assert said(judge([check], node(gpus("x")))) == ("skipped", ["no model of GPU is expected: --expect gpu=H100"])
