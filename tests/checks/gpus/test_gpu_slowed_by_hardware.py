"""NC523: clocks that the hardware holds down are an error; a power cap and an idle GPU are none."""

from __future__ import annotations

from ncheck.facts.gpu_health import Failure
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.gpu_slowed_by_hardware import gpu_slowed_by_hardware

from .health import HEALTHY, MIG, h100, node


def test_each_gpu_is_named_with_the_reason() -> None:
    nodes = {"n1": node(h100(0, throttled=0x48, temperature=92), h100(1, throttled=0x80, temperature=None), h100(2))}
    assert judge([gpu_slowed_by_hardware], nodes).findings == [
        Finding("NC523", "gpu-slowed-by-hardware", Severity.ERROR, ("n1",),
                "the hardware holds the clocks of 2 GPU(s) down: GPU 0 (0000:0f:00.0): hardware thermal slowdown, "
                "hardware slowdown, 92 degrees",
                ("GPU 0 (0000:0f:00.0): hardware thermal slowdown, hardware slowdown, 92 degrees",
                 "GPU 1 (0000:10:00.0): power brake"),
                "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER", kind="look",
                summary="the hardware slows GPUs down"),
    ]  # fmt: skip


def test_idle_clocks_limits_that_somebody_set_and_heat_that_the_driver_handles_are_none_of_it() -> None:
    reasons = (0x1, 0x2, 0x4, 0x10, 0x20, 0x100, 0x200, 0)
    nodes = {**HEALTHY, "mig": node(MIG), "n1": node(*(h100(i, throttled=bits) for i, bits in enumerate(reasons)))}
    assert judge([gpu_slowed_by_hardware], nodes).findings == []


def test_a_slowdown_that_nvml_reports_while_an_idle_gpu_changes_its_clocks_is_none() -> None:
    assert judge([gpu_slowed_by_hardware], {"n1": node(h100(0, throttled=0x9))}).findings == []
    for reasons in (0x8, 0x49, 0x81):
        assert len(judge([gpu_slowed_by_hardware], {"n1": node(h100(0, throttled=reasons))}).findings) == 1


def test_a_laptop_on_battery_is_no_defect() -> None:
    laptop = node(h100(0, name="NVIDIA GeForce RTX 4060 Laptop GPU", throttled=0x88))
    assert judge([gpu_slowed_by_hardware], {"n1": laptop}).findings == []


def test_what_could_not_be_read_is_unknown() -> None:
    nodes = {"n1": node(h100(0, throttled=None, errors={"throttled": Failure(999, "Unknown Error")}))}
    assert [one.outcome for one in judge([gpu_slowed_by_hardware], nodes).verdicts] == [Outcome.UNKNOWN]
