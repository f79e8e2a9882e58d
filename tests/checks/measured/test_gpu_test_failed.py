"""NC757: GPUs on which the test fails."""

from __future__ import annotations

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.probe import gpu_test
from ncheck.probe.gpu_test import DriverFailure
from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_test_failed import gpu_test_failed

from .tested_gpus import gpu, nodes


def test_the_step_and_the_drivers_words_are_told() -> None:
    failure = DriverFailure("a copy on the device", "cuMemcpyDtoDAsync_v2: unknown error (CUDA error 999)", 999)
    (found,) = judge([gpu_test_failed], nodes(n1=(gpu(0), gpu(1, done=False, failure=failure)))).findings
    said = "a copy on the device: cuMemcpyDtoDAsync_v2: unknown error (CUDA error 999)"
    assert found == Finding(
        "NC757", "gpu-test-failed", Severity.ERROR, ("n1",), f"the test of 0000:01:00.0 failed: {said}",
        (f"0000:01:00.0 (GPU-n1-1): {said}",), "sudo journalctl -k -g NVRM", kind="look",
        summary="a GPU fails its test",
    )  # fmt: skip


def late(step: str) -> gpu_test.TestedGpu:
    return gpu(0, done=False, ended=False, step=step)


def test_a_limit_of_time_is_no_fault_of_a_gpu_that_has_not_computed_yet() -> None:
    for step in ("start", "the driver", "compiling the kernels", "a copy on the device", "a matrix product, bf16"):
        judged = judge([gpu_test_failed], nodes(n1=(late(step), gpu(1))))
        reason = f"the test of 0000:00:00.0 did not come to its end: it did not end within its time, in: {step}"
        assert [(one.outcome, one.reason) for one in judged.verdicts] == [(Outcome.UNKNOWN, reason)]
        assert judged.findings == []


def test_a_gpu_that_fails_is_named_beside_one_that_is_late() -> None:
    dies = gpu(1, done=False, step="cuInit", words="Aborted")
    (found,) = judge([gpu_test_failed], nodes(n1=(late("the driver"), dies))).findings
    assert found.evidence == ("0000:01:00.0 (GPU-n1-1): its process died in: cuInit: Aborted",)


def test_a_process_that_hangs_while_it_computes_or_dies_says_where() -> None:
    hangs = late("computing")
    dies = gpu(1, done=False, step="cuInit", words="Aborted")
    (found,) = judge([gpu_test_failed], nodes(n1=(hangs, dies))).findings
    assert found.evidence == (
        "0000:00:00.0 (GPU-n1-0): it did not end within its time, in: computing",
        "0000:01:00.0 (GPU-n1-1): its process died in: cuInit: Aborted",
    )  # fmt: skip


def test_gpus_that_came_to_the_end_are_silent() -> None:
    assert judge([gpu_test_failed], nodes(n1=(gpu(0), gpu(1)))).findings == []
