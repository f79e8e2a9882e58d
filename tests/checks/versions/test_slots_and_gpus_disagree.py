"""NC208: more slots than GPUs that a job sees; fewer are the user's own choice."""

from __future__ import annotations

from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.gpus import GpuFacts
from ncheck.facts.login import ListingFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.versions.slots_and_gpus_disagree import slots_and_gpus_disagree

from tests.logins import line_removed, logins


def node(slots: int | None, gpus: int = 8, shown: str | None = None) -> dict[str, Facts]:
    cards = tuple(Gpu(index, "NVIDIA H100 80GB HBM3", f"GPU-{index}0000000") for index in range(gpus))
    variables = {} if shown is None else {"CUDA_VISIBLE_DEVICES": shown}
    return {
        "n1": {
            GpuFacts: GpuFacts(cards, "550.54", "12.4", "nvml") if gpus else Absent("no NVIDIA GPU"),
            ListingFacts: ListingFacts(("nodes.txt:1",), slots),
            EnvironmentFacts: logins(variables),
        }
    }


def test_more_slots_than_gpus_put_two_ranks_on_one() -> None:
    assert judge([slots_and_gpus_disagree], node(16)).findings == [
        Finding("NC208", "slots-and-gpus-disagree", Severity.ERROR, ("n1",),
                "listed with 16 slots but has 8 GPUs: two ranks would share one", (), "nvidia-smi -L",
                kind="look", summary="slots and GPUs disagree"),
    ]  # fmt: skip


def test_gpus_that_the_variable_hides_do_not_count() -> None:
    assert judge([slots_and_gpus_disagree], node(8, shown="0,1")).findings == [
        Finding("NC208", "slots-and-gpus-disagree", Severity.ERROR, ("n1",),
                "listed with 8 slots, but CUDA_VISIBLE_DEVICES shows 2 of its 8 GPUs",
                ("CUDA_VISIBLE_DEVICES=0,1",), line_removed("CUDA_VISIBLE_DEVICES"), summary="slots and GPUs disagree"),
    ]  # fmt: skip


def test_it_is_silent_where_there_is_a_gpu_for_every_slot() -> None:
    cases = [node(8), node(1), node(2, shown="6,7"), node(2, shown="GPU-3,GPU-4"), node(8, shown="0,1,2,3,4,5,6,7")]
    judged = [judge([slots_and_gpus_disagree], case) for case in cases]
    assert [(one.findings, one.verdicts[0].outcome) for one in judged] == [([], Outcome.PASSED)] * len(cases)


def test_it_is_silent_and_skipped_where_there_is_nothing_to_compare() -> None:
    for case in (node(None), node(64, gpus=0), node(8, shown="MIG-5c8b1d7c")):
        judgement = judge([slots_and_gpus_disagree], case)
        assert (judgement.findings, judgement.verdicts[0].outcome) == ([], Outcome.SKIPPED)
