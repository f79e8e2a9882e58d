"""NC901: the number of GPUs is the expected one, or it is said; a node without any has none of them."""

from __future__ import annotations

from typing import Any

from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent, Unread
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.expected.gpu_count_unexpected import gpu_count_unexpected as check

from tests.checks.expected.nodes import said

EIGHT = GpuFacts(tuple(Gpu(index, "H100") for index in range(8)), "550.54", "12.4", "nvml")


def node(fact: object, **expected: Any) -> dict[str, Facts]:
    return {"n1": {ExpectedFacts: ExpectedFacts(**expected), GpuFacts: fact}}


def test_fewer_gpus_than_expected_are_an_error_on_every_node_that_lacks_some() -> None:
    assert said(judge([check], node(EIGHT, gpus=9))) == ("failed", ["8 GPUs, expected 9"])
    assert said(judge([check], node(Absent("no NVIDIA GPU"), gpus=8))) == ("failed", ["0 GPUs, expected 8"])


def test_what_could_not_be_read_is_unknown() -> None:
    assert said(judge([check], node(Unread("NVML hangs"), gpus=8))) == ("unknown", ["NVML hangs"])


def test_it_is_silent_where_the_number_is_right_or_none_is_expected() -> None:
    assert said(judge([check], node(EIGHT, gpus=8))) == ("passed", [""])
    assert said(judge([check], node(Absent("no NVIDIA GPU"), gpus=0))) == ("passed", [""])
    assert said(judge([check], node(EIGHT))) == ("skipped", ["no number of GPUs is expected: --expect gpus=8"])
