"""NC211: a variable that was left behind hides GPUs, where no slots say that it was meant."""

from __future__ import annotations

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import ListingFacts
from ncheck.facts.run import JobFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck.topology.gpus import visible_gpus
from ncheck_checks.versions.gpus_hidden import gpus_hidden

from tests.logins import line_removed, logins

CARDS = tuple(Gpu(index, "NVIDIA H100 80GB HBM3", f"GPU-{index}f00") for index in range(4))


def node(
    shown: str | None, slots: int | None = None, cards: tuple[Gpu, ...] = CARDS, *, running: bool = False
) -> dict[str, Facts]:
    variables = {} if shown is None else {"CUDA_VISIBLE_DEVICES": shown}
    return {
        "n1": {
            GpuFacts: GpuFacts(cards, "550.54", "12.4", "nvml") if cards else Absent("no NVIDIA GPU"),
            ListingFacts: ListingFacts(("nodes.txt:1",), slots),
            EnvironmentFacts: logins(variables),
            JobFacts: JobFacts(running=running),
        }
    }


def test_a_variable_that_shows_fewer_gpus_than_there_are_is_named() -> None:
    assert judge([gpus_hidden], node("0,7,1")).findings == [
        Finding("NC211", "gpus-hidden", Severity.WARNING, ("n1",), "CUDA_VISIBLE_DEVICES shows 1 of its 4 GPUs",
                ("CUDA_VISIBLE_DEVICES=0,7,1",), line_removed("CUDA_VISIBLE_DEVICES"),
                summary="only 1 of 4 GPUs are visible"),
    ]  # fmt: skip


def test_a_variable_that_shows_none_of_the_gpus_is_an_error() -> None:
    assert judge([gpus_hidden], node("")).findings == [
        Finding("NC211", "gpus-hidden", Severity.ERROR, ("n1",), "CUDA_VISIBLE_DEVICES shows none of its 4 GPUs",
                ("CUDA_VISIBLE_DEVICES=''",), line_removed("CUDA_VISIBLE_DEVICES"), summary="all GPUs are hidden"),
    ]  # fmt: skip


def test_it_is_silent_where_nothing_is_hidden() -> None:
    judged = [judge([gpus_hidden], node(shown)) for shown in (None, "0,1,2,3", "3,2,1,0")]
    assert [(one.findings, one.verdicts[0].outcome) for one in judged] == [([], Outcome.PASSED)] * 3


def test_it_is_silent_and_skipped_where_slots_say_what_is_wanted_or_no_gpu_is_there() -> None:
    for case in (node("0", slots=1), node("MIG-5c8b1d7c"), node("0", cards=())):
        judgement = judge([gpus_hidden], case)
        assert (judgement.findings, judgement.verdicts[0].outcome) == ([], Outcome.SKIPPED)


@pytest.mark.parametrize(("shown", "count"), [
    ("", 0), ("-1", 0), ("0", 1), ("0,-1,1", 1), (" 0, 1", 2), ("GPU-0,GPU-3f", 2), ("GPU-", 0), ("0,0", 0), ("9", 0),
    ("NoDevFiles", 0), ("²", 0), ("MIG-5c8b1d7c", None),
])  # fmt: skip
def test_the_variable_is_read_as_cuda_reads_it(shown: str, count: int | None) -> None:
    environment = EnvironmentFacts({"CUDA_VISIBLE_DEVICES": shown}, {})
    assert visible_gpus(GpuFacts(CARDS, "550.54", "12.4", "nvml"), environment) == count


def test_what_the_launcher_of_a_running_job_shows_each_rank_is_not_judged() -> None:
    judgement = judge([gpus_hidden], node("2", running=True))
    assert judgement.findings == []
    assert [(one.outcome, one.reason) for one in judgement.verdicts] == [
        (Outcome.SKIPPED, "the job's launcher may show each rank GPUs of its own")
    ]
