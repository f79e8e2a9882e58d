"""NC503: drivers are compared within a GPU model."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.gpus.driver_differs import driver_differs


def node(driver: str, model: str = "NVIDIA H100 80GB HBM3") -> Facts:
    return {GpuFacts: GpuFacts((Gpu(0, model),), driver, "12.4", "nvml")}


def test_another_driver_is_named() -> None:
    nodes = {"n1": node("550.54.15"), "n2": node("550.54.15"), "n3": node("535.104.05")}
    assert judge([driver_differs], nodes).findings == [
        Finding("NC503", "driver-differs", Severity.WARNING, ("n3",),
                "the GPU driver differs: 550.54.15 on n[1-2], 535.104.05 on n3 (2 to 1)",
                ("driver 550.54.15, CUDA 12.4 on n[1-2]", "driver 535.104.05, CUDA 12.4 on n3"),
                "modinfo -F version nvidia", kind="look", summary="the GPU driver differs"),
    ]  # fmt: skip


def test_it_is_silent_where_each_model_has_its_own_driver() -> None:
    nodes = {
        "n1": node("550.54.15"),
        "n2": node("550.54.15"),
        "n3": node("470.82", "Tesla K80"),
        "n4": node("470.82", "Tesla K80"),
    }
    assert judge([driver_differs], nodes).findings == []
