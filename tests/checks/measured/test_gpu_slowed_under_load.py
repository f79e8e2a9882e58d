"""NC755: GPUs that are healthy at rest."""

from __future__ import annotations

from dataclasses import replace

from ncheck.judge import judge
from ncheck.model.finding import Outcome
from ncheck_checks.measured.gpu_slowed_under_load import gpu_slowed_under_load

from .tested_gpus import LOOK, gpu, nodes


def test_heat_and_what_it_costs_are_named() -> None:
    hot = replace(LOOK, throttled=0x40, temperature=91)
    (found,) = judge([gpu_slowed_under_load], nodes(n1=(gpu(0), gpu(1, looks=(LOOK, hot), late_fma=9.0)))).findings
    assert found.evidence == (
        "0000:01:00.0: hardware thermal slowdown, 9 TFLOPS at the end, 18 at the beginning, 91 degrees",
    )  # fmt: skip


def test_a_power_cap_is_usual() -> None:
    assert [one.outcome for one in judge([gpu_slowed_under_load], nodes(n1=(gpu(0),))).verdicts] == [Outcome.PASSED]


def test_where_no_gpu_was_kept_busy_nothing_is_known() -> None:
    idle = gpu(0, late_fma=None, looks=(), done=False)
    assert [one.outcome for one in judge([gpu_slowed_under_load], nodes(n1=(idle,))).verdicts] == [Outcome.SKIPPED]


def test_where_nvml_was_not_asked_it_is_unknown() -> None:
    unseen = gpu(0, looks=(), unwatched="NVML Shared Library Not Found")
    (verdict,) = judge([gpu_slowed_under_load], nodes(n1=(unseen, gpu(1)))).verdicts
    assert (verdict.outcome, verdict.reason) == (Outcome.UNKNOWN, "0000:00:00.0: NVML Shared Library Not Found")
