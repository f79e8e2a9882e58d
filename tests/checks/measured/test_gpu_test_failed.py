"""NC757: GPUs on which the test fails."""

from __future__ import annotations

from ncheck.judge import judge
from ncheck.model.finding import Finding, Severity
from ncheck.probe.gpu_test import DriverFailure
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


def test_a_process_that_hangs_or_dies_says_where() -> None:
    hangs = gpu(0, done=False, ended=False, step="computing")
    dies = gpu(1, done=False, step="cuInit", words="Aborted")
    (found,) = judge([gpu_test_failed], nodes(n1=(hangs, dies))).findings
    assert found.evidence == (
        "0000:00:00.0 (GPU-n1-0): it did not end within its time, in: computing",
        "0000:01:00.0 (GPU-n1-1): its process died in: cuInit: Aborted",
    )  # fmt: skip


def test_gpus_that_came_to_the_end_are_silent() -> None:
    assert judge([gpu_test_failed], nodes(n1=(gpu(0), gpu(1)))).findings == []
