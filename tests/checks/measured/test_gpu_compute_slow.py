"""NC751: GPUs that compute slowly."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.probe.gpu_test import BusyLook
from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_compute_slow import gpu_compute_slow

from .tested_gpus import A100, LOOK, gpu, nodes


def test_below_080_of_the_median_is_an_error_with_the_figures() -> None:
    (found,) = judge(
        [gpu_compute_slow], nodes(n1=(gpu(0), gpu(1)), n2=(gpu(0, "n2"), gpu(1, "n2", bf16=135.0)))
    ).findings
    assert found == Finding(
        "NC751", "gpu-compute-slow", Severity.ERROR, ("n2",),
        "slow computing on 0000:01:00.0 of n2: 0.50 of what it should be",
        ("0000:01:00.0: BF16 GEMM 135 TFLOPS, the usual is 270 (0.50)",),
        "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE", kind="look", summary="a GPU has slow computing",
    )  # fmt: skip


def test_below_092_is_a_warning_and_above_it_nothing() -> None:
    (found,) = judge([gpu_compute_slow], nodes(n1=(gpu(0), gpu(1), gpu(2, fma=15.8)))).findings
    assert (found.severity, found.message) == (
        Severity.WARNING, "slow computing on 0000:02:00.0 of n1: 0.88 of what it should be",
    )  # fmt: skip
    assert judge([gpu_compute_slow], nodes(n1=(gpu(0), gpu(1), gpu(2, fma=17.0)))).findings == []


def test_of_two_the_faster_one_is_what_the_other_should_be() -> None:
    (found,) = judge([gpu_compute_slow], nodes(n1=(gpu(0), gpu(1, fma=12.0)))).findings
    assert found.evidence == ("0000:01:00.0: FP32 12 TFLOPS, the other has 18 (0.67)",)


def test_where_all_are_slow_the_data_sheet_says_so() -> None:
    slow = tuple(gpu(index, fma=6.0) for index in range(4))
    (found,) = judge([gpu_compute_slow], nodes(n1=slow)).findings
    assert found.evidence[0] == "0000:00:00.0: FP32 6 TFLOPS, 60% of the data sheet at 1400 of 1410 MHz is 11.6 (0.52)"


def test_what_a_power_cap_takes_from_a_gpu_alone_is_no_fault_of_it() -> None:
    capped = BusyLook(700, 1410, 0x4, 400_000, 400_000, 60, 4, 4, 16, 16)
    free = replace(capped, throttled=0)
    cases = (
        ("NVIDIA L4", 10.7, LOOK), ("Tesla T4", 2.9, LOOK), ("NVIDIA A10", 11.0, LOOK), (A100, 7.0, capped),
    )  # fmt: skip
    for model, fma, look in cases:
        judged = judge([gpu_compute_slow], nodes(model, n1=(gpu(0, fma=fma, looks=(look, look)),)))
        assert [one.outcome for one in judged.verdicts] == [Outcome.PASSED], model
    texts = []
    for model, fma, look in (("NVIDIA L4", 5.0, LOOK), (A100, 4.0, capped), (A100, 7.0, free)):
        judged = judge([gpu_compute_slow], nodes(model, n1=(gpu(0, fma=fma, looks=(look, look)),)))
        texts += [text for found in judged.findings for text in found.evidence]
    assert texts == [
        "0000:00:00.0: FP32 5 TFLOPS, 30% of the data sheet is 9.09 (0.55)",
        "0000:00:00.0: FP32 4 TFLOPS, 60% of the data sheet at 700 of 1410 MHz is 5.81 (0.69)",
        "0000:00:00.0: FP32 7 TFLOPS, 60% of the data sheet is 11.7 (0.60)",
    ]


def test_one_gpu_of_an_unknown_model_is_not_judged() -> None:
    judged = judge([gpu_compute_slow], nodes("NVIDIA Unheard-Of 9000", n1=(gpu(0),)))
    assert [verdict.outcome for verdict in judged.verdicts] == [Outcome.SKIPPED]
    assert [one.outcome for one in judge([gpu_compute_slow], nodes(n1=(gpu(0),))).verdicts] == [Outcome.PASSED]
