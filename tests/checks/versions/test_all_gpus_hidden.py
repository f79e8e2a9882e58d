"""NC226: a variable that hides every GPU of a node."""

from __future__ import annotations

import pytest
from ncheck.judge import judge
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck_checks.versions.all_gpus_hidden import all_gpus_hidden
from ncheck_checks.versions.gpus_hidden import gpus_hidden

from .test_gpus_hidden import node


def test_a_variable_that_shows_none_of_the_gpus_is_one_error() -> None:
    assert judge([all_gpus_hidden, gpus_hidden], node("")).findings == [
        Finding("NC226", "all-gpus-hidden", Severity.ERROR, ("n1",), "CUDA_VISIBLE_DEVICES hides all of its 4 GPUs",
                ("CUDA_VISIBLE_DEVICES=''",), "unset CUDA_VISIBLE_DEVICES", summary="all GPUs are hidden"),
    ]  # fmt: skip


@pytest.mark.parametrize("shown", [None, "0", "0,7,1"])
def test_it_is_silent_where_a_gpu_is_visible(shown: str | None) -> None:
    assert judge([all_gpus_hidden], node(shown)).findings == []


def test_it_is_skipped_without_gpus_with_mig_with_slots_and_inside_a_job() -> None:
    cases = (node("", cards=()), node("MIG-5c8b1d7c"), node("", slots=4), node("", running=True))
    outcomes = [judge([all_gpus_hidden], case).verdicts[0].outcome for case in cases]
    assert outcomes == [Outcome.SKIPPED] * 4
