"""NC751: GPUs that compute slowly."""

from __future__ import annotations

from ncheck.judge import judge
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.measured.gpu_compute_slow import gpu_compute_slow

from .tested_gpus import gpu, nodes


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
    assert found.evidence[0] == "0000:00:00.0: FP32 6 TFLOPS, 60% of the data sheet is 11.7 (0.51)"


def test_one_gpu_of_an_unknown_model_is_not_judged() -> None:
    judged = judge([gpu_compute_slow], nodes("NVIDIA Unheard-Of 9000", n1=(gpu(0),)))
    assert [verdict.outcome for verdict in judged.verdicts] == [Outcome.SKIPPED]
    assert [one.outcome for one in judge([gpu_compute_slow], nodes(n1=(gpu(0),))).verdicts] == [Outcome.PASSED]
