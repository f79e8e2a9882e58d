"""NC509: fewer NVLinks than the other GPUs of the node; silent where the board is uneven by design."""

from __future__ import annotations

import pytest
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.nvlinks_fewer import nvlinks_fewer

from .matrices import cube, node, without


def messages(facts: Facts) -> list[str]:
    return [found.message for found in judge([nvlinks_fewer], {"n1": facts}).findings]


def test_a_gpu_with_fewer_links_to_the_switches_is_a_warning() -> None:
    assert judge([nvlinks_fewer], {"n1": node(8, "NV18", without(3, 8, "NV17"))}).findings == [
        Finding("NC509", "nvlinks-fewer", Severity.WARNING, ("n1",),
                "fewer NVLinks than the other GPUs: GPU3 (17 of 18)", ("read from nvidia-smi",),
                "nvidia-smi nvlink -s", kind="look", summary="fewer NVLinks"),
    ]  # fmt: skip


@pytest.mark.parametrize(("facts", "fewer"), [
    (node(4, "NV4", {(0, 1): "NV3"}), "GPU0 (11 of 12), GPU1 (11 of 12)"),
    (node(4, "SYS", {(0, 1): "NV12", (2, 3): "NV8"}), "GPU2 (8 of 12), GPU3 (8 of 12)"),
    (node(8, "SYS", {**cube(*range(8)), (0, 3): "NV1"}), "GPU0 (5 of 6), GPU3 (5 of 6)"),
])  # fmt: skip
def test_a_link_that_is_down_without_switches_is_a_warning(facts: Facts, fewer: str) -> None:
    assert messages(facts) == [f"fewer NVLinks than the other GPUs: {fewer}"]


@pytest.mark.parametrize("facts", [
    node(8, "NV18"), node(4, "NV4"), node(2, "NV12"), node(8, "SYS"), node(4, "SYS", {(0, 1): "NV4", (2, 3): "NV4"}),
    node(3, "PHB", {(0, 1): "NV4"}), node(8, "SYS", cube(*range(8))), node(3, "SYS", cube(0, 1, 2)),
    node(3, "SYS", cube(0, 1, 4)), node(5, "SYS", cube(0, 1, 2, 3, 7)),
    node(8, "NV12", without(3, 8, "NV6"), mig=("GPU3",)),
])  # fmt: skip
def test_it_is_silent_about_healthy_boards(facts: Facts) -> None:
    assert messages(facts) == []


def test_gpus_of_different_models_are_not_compared() -> None:
    mixed = node(4, "SYS", {(0, 2): "NV12", (1, 3): "NV4"}, models=("NVIDIA A100 80GB PCIe", "NVIDIA A40"))
    assert judge([nvlinks_fewer], {"n1": mixed}).verdicts[0].outcome is Outcome.SKIPPED
