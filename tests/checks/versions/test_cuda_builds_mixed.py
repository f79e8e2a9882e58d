"""NC216: what was built for another CUDA or torch says so in its name or version; nothing else is judged."""

from __future__ import annotations

import pytest
from ncheck.facts.interpreter import InterpreterFacts, TorchBuild
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.versions.cuda_builds_mixed import cuda_builds_mixed as check

from tests.checks.expected.nodes import said
from tests.checks.versions.pythons import PATH, python

TORCH = TorchBuild("2.3.0+cu121", "12.1")
OLD = TorchBuild("2.3.0+cu118", "11.8")
LOCAL = "2.5.8+cu122torch2.3cxx11abifalse"


def test_two_wheels_of_one_file_and_libraries_of_another_cuda_are_one_finding() -> None:
    mixed = python(
        OLD, nvidia_nccl_cu12="2.29.3", nvidia_nccl_cu13="2.29.7", nvidia_dali_cuda120="1.37.1", flash_attn=LOCAL
    )
    assert judge([check], {"n1": {InterpreterFacts: mixed}}).findings == [
        Finding("NC216", "cuda-builds-mixed", Severity.WARNING, ("n1",),
                "nvidia-nccl-cu12 2.29.3 and nvidia-nccl-cu13 2.29.7 overwrite each other's libnccl.so.2; "
                "nvidia-dali-cuda120 1.37.1 is for CUDA 12, and torch 2.3.0+cu118 for CUDA 11.8; "
                f"flash-attn {LOCAL} is for CUDA 12, and torch 2.3.0+cu118 for CUDA 11.8",
                (), f"{PATH} -m pip list | grep -i -E 'cu1|cuda|torch'", kind="look",
                summary="packages for different CUDA releases"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            python(TORCH, nvidia_nccl_cu12="2.29.3", nvidia_nccl_cu13="2.29.7"),
            "nvidia-nccl-cu12 2.29.3 and nvidia-nccl-cu13 2.29.7 overwrite each other's libnccl.so.2",
        ),
        (
            python(None, nvidia_cudnn_cu11="8.9.6", nvidia_cudnn_cu12="9.1.0"),
            "nvidia-cudnn-cu11 8.9.6 and nvidia-cudnn-cu12 9.1.0 overwrite each other's libcudnn",
        ),
        (
            python(OLD, nvidia_dali_cuda120="1.37.1"),
            "nvidia-dali-cuda120 1.37.1 is for CUDA 12, and torch 2.3.0+cu118 for CUDA 11.8",
        ),
        (python(OLD, flash_attn=LOCAL), f"flash-attn {LOCAL} is for CUDA 12, and torch 2.3.0+cu118 for CUDA 11.8"),
        (
            python(TorchBuild("2.4.1+cu121", "12.1"), flash_attn=LOCAL),
            f"flash-attn {LOCAL} is for torch 2.3, and torch is 2.4.1+cu121",
        ),
        (
            python(TORCH, torchvision="0.18.0+cu118"),
            "torchvision 0.18.0+cu118 is for CUDA 11, and torch 2.3.0+cu121 for CUDA 12.1",
        ),
    ],
)
def test_a_package_for_another_build_is_named(own: InterpreterFacts, message: str) -> None:
    assert said(judge([check], {"n1": {InterpreterFacts: own}})) == ("failed", [message])


@pytest.mark.parametrize(
    "own",
    [
        python(TORCH, nvidia_nccl_cu12="2.20.5", nvidia_cudnn_cu12="8.9.2.26", nvidia_dali_cuda120="1.37.1"),
        python(TORCH, flash_attn=LOCAL, torchvision="0.18.0+cu121", transformer_engine_cu12="2.3.0"),
        python(TORCH, apex="0.1", torchvision="0.18.0", flash_attn="2.5.8", transformer_engine="1.7.0+4e7caa1"),
        python(TorchBuild("2.9.0a0+50eac811a6.nv25.09", "13.0"), flash_attn="2.7.4", nvidia_dali_cuda130="1.51.2"),
        python(TorchBuild("2.3.0+cpu"), torchvision="0.18.0+cpu", nvidia_dali_cuda120="1.37.1"),
        python(None, nvidia_dali_cuda120="1.37.1"),
    ],
)
def test_it_is_silent_about_builds_that_fit_or_do_not_say(own: InterpreterFacts) -> None:
    assert said(judge([check], {"n1": {InterpreterFacts: own}})) == ("passed", [""])


def test_it_is_skipped_where_nothing_was_built_for_cuda() -> None:
    assert said(judge([check], {"n1": {InterpreterFacts: python()}})) == (
        "skipped", ["no package that was built for a CUDA release"],
    )  # fmt: skip
