"""NC750: GPUs that compute something else."""

from __future__ import annotations

from dataclasses import replace

from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.probe.gpu_test import GpuTestFacts
from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_computes_wrong import gpu_computes_wrong

from .tested_gpus import COMPUTED, gpu, nodes

BLOCKS = {**COMPUTED, "floats": ("f6986a1c5e805e1c", 3)}
WARM = {**COMPUTED, "floats again": ("b7", 0)}
OTHER = {**COMPUTED, "integers": ("a1", 0), "integers again": ("a1", 0)}


def test_a_gpu_whose_blocks_differ_is_named_with_its_uuid() -> None:
    ill = gpu(1, results=BLOCKS, serial="16")
    (found,) = judge([gpu_computes_wrong], nodes(n1=(gpu(0), ill))).findings
    assert found == Finding(
        "NC750", "gpu-computes-wrong", Severity.ERROR, ("n1",), "wrong results on 0000:01:00.0 of n1",
        ("0000:01:00.0 (GPU-n1-1, serial number 16): floats: 3 of 4096 blocks differ from the others on the same GPU",),
        "nvidia-smi -q -d ECC,ROW_REMAPPER", kind="look", summary="a GPU computes wrong results",
    )  # fmt: skip


def test_a_gpu_that_computes_otherwise_when_warm_or_than_its_peers_is_named() -> None:
    cluster = nodes(n1=(gpu(0), gpu(1, results=WARM)), n2=(gpu(0, "n2"), gpu(1, "n2", results=OTHER)))
    first, second = judge([gpu_computes_wrong], cluster).findings
    assert first.evidence == ("0000:01:00.0 (GPU-n1-1): floats: f6986a1c5e805e1c when cold, b7 when warm",)
    assert second.evidence == ("0000:01:00.0 (GPU-n2-1): integers: a1; other GPUs of this model: 6f01ed4fc43e4e36",)


def test_of_two_gpus_that_disagree_both_are_named() -> None:
    (found,) = judge([gpu_computes_wrong], nodes(n1=(gpu(0), gpu(1, results=OTHER)))).findings
    assert len(found.evidence) == 2


def test_what_another_model_computes_makes_no_gpu_wrong() -> None:
    cluster = {**nodes(n1=(gpu(0),)), **nodes("NVIDIA H200", n2=(gpu(0, "n2", results=OTHER),))}
    (found,) = judge([gpu_computes_wrong], cluster).findings
    assert (found.severity, found.nodes) == (Severity.WARNING, ("n2",))


def test_a_gpu_alone_and_a_whole_model_that_differ_from_ieee_arithmetic_are_a_warning() -> None:
    alone = judge([gpu_computes_wrong], nodes(n1=(gpu(0, results=OTHER),)))
    assert alone.findings == [
        Finding(
            "NC750", "gpu-computes-wrong", Severity.WARNING, ("n1",),
            "the results of 0000:00:00.0 of n1 differ from IEEE arithmetic",
            ("0000:00:00.0 (GPU-n1-0): integers: a1; exact arithmetic gives 6f01ed4fc43e4e36",),
            "nvidia-smi -q -d ECC,ROW_REMAPPER", kind="look", summary="a GPU differs from IEEE arithmetic",
        ),
    ]  # fmt: skip
    alike = nodes(n1=(gpu(0, results=OTHER), gpu(1, results=OTHER)), n2=(gpu(0, "n2", results=OTHER),))
    assert [(one.severity, one.nodes, len(one.evidence)) for one in judge([gpu_computes_wrong], alike).findings] == [
        (Severity.WARNING, ("n1",), 2), (Severity.WARNING, ("n2",), 1),
    ]  # fmt: skip


def test_a_test_that_did_not_end_proves_nothing() -> None:
    half = {name: COMPUTED[name] for name in ("integers", "floats")}
    judged = judge([gpu_computes_wrong], nodes(n1=(gpu(0), gpu(1, results=half, done=False, ended=False))))
    assert [(one.outcome, one.reason) for one in judged.verdicts] == [
        (Outcome.UNKNOWN, "0000:01:00.0: it did not end within its time, in: integers again")
    ]
    nothing = gpu(1, results={}, notes=("no libhiprtc of ROCm: nothing was computed",))
    (verdict,) = judge([gpu_computes_wrong], nodes(n1=(gpu(0), nothing))).verdicts
    assert verdict.reason == "0000:01:00.0: no libhiprtc of ROCm: nothing was computed"
    healthy = judge([gpu_computes_wrong], nodes(n1=(gpu(0), replace(gpu(1), notes=("no cuBLAS",)))))
    assert [verdict.outcome for verdict in healthy.verdicts] == [Outcome.PASSED]


def test_of_amd_the_command_is_of_its_own_tool() -> None:
    known = nodes("AMD Instinct MI300X", n1=(gpu(0), gpu(1, results=BLOCKS)))
    tested = known["n1"][GpuTestFacts]
    assert isinstance(tested, GpuTestFacts)
    known["n1"] = {**known["n1"], GpuTestFacts: replace(tested, vendor="AMD")}
    assert [one.fix for one in judge([gpu_computes_wrong], known).findings] == ["amd-smi metric"]
