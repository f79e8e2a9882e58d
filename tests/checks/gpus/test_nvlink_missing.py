"""NC508: GPUs that NVSwitches do not join; silent where nothing joins all GPUs by design."""

from __future__ import annotations

import pytest
from ncheck.model.cluster import Facts
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.steps.judge import judge
from ncheck_checks.gpus.nvlink_missing import nvlink_missing

from .matrices import cube, node, without


def messages(facts: Facts) -> list[str]:
    return [found.message for found in judge([nvlink_missing], {"n1": facts}).findings]


def test_a_gpu_without_nvlink_behind_switches_is_an_error() -> None:
    assert judge([nvlink_missing], {"n1": node(8, "NV18", without(3, 8))}).findings == [
        Finding("NC508", "nvlink-missing", Severity.ERROR, ("n1",),
                "GPU3 has no NVLink, although NVSwitches join the other GPUs", ("read from nvidia-smi",),
                "nvidia-smi nvlink -s", kind="look", summary="NVLink is missing"),
    ]  # fmt: skip


def test_two_gpus_that_do_not_reach_each_other_are_an_error() -> None:
    assert messages(node(8, "NV12", {(0, 5): "SYS"})) == [
        "no NVLink between GPU0 and GPU5, although NVSwitches join the other GPUs"
    ]


@pytest.mark.parametrize("facts", [
    node(8, "NV18"), node(4, "NV18"), node(2, "NV18"), node(8, "SYS"), node(2, "PHB"),
    node(8, "NV18", without(3, 8), mig=("GPU3",)), node(3, "SYS", {(0, 1): "NV4"}), node(3, "PHB", {(0, 1): "NV12"}),
    node(8, "SYS", cube(*range(8))), node(4, "SYS", cube(0, 1, 2, 7)), node(4, "NV4"), node(4, "SYS", {(0, 1): "NV12"}),
])  # fmt: skip
def test_it_is_silent_about_healthy_boards(facts: Facts) -> None:
    assert messages(facts) == []


def test_one_gpu_has_nothing_to_be_joined_with() -> None:
    assert judge([nvlink_missing], {"n1": node(1, "X")}).verdicts[0].outcome is Outcome.SKIPPED
