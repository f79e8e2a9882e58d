"""NC222: libraries are compared among nodes with the same frameworks."""

from __future__ import annotations

from ncheck.facts.interpreter import InterpreterFacts, TorchBuild
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.library_differs import library_differs as check

from tests.checks.versions.pythons import PATH, python

TORCH = TorchBuild("2.3.0+cu121", "12.1")
OLDER = TorchBuild("2.1.0+cu121", "12.1")


def nodes(*pythons: InterpreterFacts) -> dict[str, Facts]:
    return {f"n{number}": {InterpreterFacts: own} for number, own in enumerate(pythons, 1)}


def test_a_node_without_the_library_and_one_with_another_version_are_named() -> None:
    usual = python(TORCH, flash_attn="2.5.8", nvidia_cudnn_cu12="8.9.2.26")
    lacking = python(TORCH, nvidia_cudnn_cu12="9.1.0.70")
    assert judge([check], nodes(usual, usual, lacking)).findings == [
        Finding("NC222", "library-differs", Severity.WARNING, ("n3",),
                "flash-attn differs: 2.5.8 on n[1-2], none on n3 (2 to 1)", (),
                f"{PATH} -m pip install flash-attn==2.5.8", summary="flash-attn differs"),
        Finding("NC222", "library-differs", Severity.WARNING, ("n3",),
                "nvidia-cudnn-cu12 differs: 8.9.2.26 on n[1-2], 9.1.0.70 on n3 (2 to 1)", (),
                f"{PATH} -m pip install nvidia-cudnn-cu12==8.9.2.26", summary="nvidia-cudnn-cu12 differs"),
    ]  # fmt: skip


def test_it_is_silent_about_libraries_that_follow_from_another_framework() -> None:
    usual = python(TORCH, nvidia_cudnn_cu12="8.9.2.26")
    other = python(OLDER, nvidia_cudnn_cu12="8.9.0.1")
    judgement = judge([check], nodes(usual, usual, other))
    assert (judgement.findings, [one.outcome for one in judgement.verdicts]) == (
        [], [Outcome.PASSED, Outcome.PASSED, Outcome.SKIPPED],
    )  # fmt: skip


def test_it_is_silent_about_what_few_nodes_have_and_about_nccls_wheels() -> None:
    usual = python(TORCH, torchvision="0.18.0", nvidia_nccl_cu12="2.20.5")
    more = python(TORCH, torchvision="0.18.0", torchaudio="2.3.0", nvidia_nccl_cu12="2.21.5")
    assert judge([check], nodes(usual, usual, more)).findings == []


def test_it_is_skipped_where_no_node_has_any() -> None:
    assert [one.outcome for one in judge([check], nodes(python(), python())).verdicts] == [Outcome.SKIPPED] * 2
