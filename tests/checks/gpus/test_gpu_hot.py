"""NC524: a GPU that is too hot by its own thresholds is a warning."""

from __future__ import annotations

import pytest
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_hot import gpu_hot

from .health import HEALTHY, MIG, h100, node


def lines(**changed: object) -> list[str]:
    return [line for one in judge([gpu_hot], {"n1": node(h100(0, **changed))}).findings for line in one.evidence]


def test_a_gpu_that_the_driver_slows_down_is_named() -> None:
    line = "GPU 1 (0000:10:00.0): 88 degrees, the driver slows it down"
    assert judge([gpu_hot], {"n1": node(h100(0), h100(1, throttled=0x20, temperature=88))}).findings == [
        Finding("NC524", "gpu-hot", Severity.WARNING, ("n1",), f"1 GPU(s) too hot: {line}", (line,),
                "nvidia-smi -q -d TEMPERATURE,PERFORMANCE", kind="look", summary="GPUs are too hot"),
    ]  # fmt: skip


def test_its_own_thresholds_count() -> None:
    assert lines(temperature=89, margin=None) == ["GPU 0 (0000:0f:00.0): 89 degrees, slowdown begins at 89"]
    assert lines(temperature=85, slowdown=None, margin=-1) == [
        "GPU 0 (0000:0f:00.0): 85 degrees, at or above its slowdown temperature"
    ]
    assert lines(memory_temperature=96) == ["GPU 0 (0000:0f:00.0): its memory has 96 degrees, and 95 is the limit"]


@pytest.mark.parametrize("slowdown", [None, 0, 2, 65535])
def test_a_threshold_of_no_sense_is_none(slowdown: int | None) -> None:
    assert lines(temperature=70, slowdown=slowdown, margin=None) == []
    assert lines(memory_temperature=70, memory_limit=slowdown) == []


def test_it_is_silent_on_healthy_nodes() -> None:
    assert (
        judge([gpu_hot], {**HEALTHY, "mig": node(MIG), "warm": node(h100(0, temperature=84, margin=3))}).findings == []
    )
