"""NC755: GPUs that are healthy at rest."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.finding import Outcome
from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_slowed_under_load import gpu_slowed_under_load

from .tested_gpus import LOOK, gpu, nodes


def test_heat_and_what_it_costs_are_named() -> None:
    hot = replace(LOOK, throttled=0x40, temperature=91)
    (found,) = judge([gpu_slowed_under_load], nodes(n1=(gpu(0), gpu(1, looks=(LOOK, hot, hot), late_fma=9.0)))).findings
    assert found.evidence == (
        "0000:01:00.0: hardware thermal slowdown, 9 TFLOPS at the end, 18 at the beginning, 91 degrees",
    )  # fmt: skip


def test_a_power_cap_is_usual_also_where_it_bites_late_and_one_look_proves_nothing() -> None:
    free, change = replace(LOOK, throttled=0x0), replace(LOOK, throttled=0xC)
    for healthy in (
        gpu(0),
        gpu(0, looks=(free, LOOK, LOOK), late_fma=15.0),
        gpu(0, looks=(change, LOOK, LOOK), late_fma=15.0),  # while the load begins, NVML may say anything
        gpu(0, looks=(replace(LOOK, throttled=0x40), replace(LOOK, throttled=0x08), LOOK)),
    ):
        assert [one.outcome for one in judge([gpu_slowed_under_load], nodes(n1=(healthy,))).verdicts] == [
            Outcome.PASSED
        ]


def test_a_drop_that_no_power_cap_explains_is_named() -> None:
    for bits in (0x0, None):  # None: AMD's driver does not say
        looks = (replace(LOOK, throttled=bits),) * 2
        (found,) = judge([gpu_slowed_under_load], nodes(n1=(gpu(0, looks=looks, late_fma=9.0),))).findings
        assert found.evidence == ("0000:00:00.0: 9 TFLOPS at the end, 18 at the beginning, 60 degrees",)


def test_where_no_gpu_was_kept_busy_nothing_is_known() -> None:
    idle = gpu(0, late_fma=None, looks=(), done=False)
    assert [one.outcome for one in judge([gpu_slowed_under_load], nodes(n1=(idle,))).verdicts] == [Outcome.SKIPPED]


def test_where_nvml_was_not_asked_it_is_unknown() -> None:
    unseen = gpu(0, looks=(), unwatched="NVML Shared Library Not Found")
    (verdict,) = judge([gpu_slowed_under_load], nodes(n1=(unseen, gpu(1)))).verdicts
    assert (verdict.outcome, verdict.reason) == (Outcome.UNKNOWN, "0000:00:00.0: NVML Shared Library Not Found")
