"""NC730: memory of a GPU is in use before the job has begun; what a driver keeps for itself is none."""

from __future__ import annotations

from ncheck.facts.gpus import GpuFacts
from ncheck.facts.ranks import RanksFacts
from ncheck.judge import judge
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck_checks.measured.gpu_in_use import gpu_in_use

GIB = 2**30


def node(
    *used: int | None, total: int = 80 * GIB, processes: dict[int, int | None] | None = None, pids: tuple[int, ...] = ()
) -> dict[str, Facts]:
    cards = tuple(
        Gpu(index, "NVIDIA H100 80GB HBM3", memory_total=total, memory_used=bytes_used, processes=processes)
        for index, bytes_used in enumerate(used)
    )
    gpus = GpuFacts(cards, "550.54", "12.4", "nvml") if used else Absent("no NVIDIA GPU")
    ranks = RanksFacts(1, (0,), pids) if pids else Absent("ncheck does not run inside a job")
    return {"n1": {GpuFacts: gpus, RanksFacts: ranks}}


def test_memory_in_use_is_told_for_each_gpu_that_has_it() -> None:
    assert judge([gpu_in_use], node(GIB // 2, 4 * GIB, 40 * GIB)).findings == [
        Finding("NC730", "gpu-in-use", Severity.WARNING, ("n1",),
                "GPU memory is in use before the job starts: 5% of GPU 1, 50% of GPU 2", (), "nvidia-smi",
                kind="look", summary="GPUs are in use"),
    ]  # fmt: skip


def test_more_than_a_tenth_of_a_small_gpu_is_told_though_it_is_no_gibibyte() -> None:
    assert len(judge([gpu_in_use], node(GIB, total=8 * GIB)).findings) == 1


def test_inside_a_job_only_what_others_use_is_told() -> None:
    processes: dict[int, int | None] = {711: 30 * GIB, 4000: 8 * GIB}
    (found,) = judge([gpu_in_use], node(40 * GIB, processes=processes, pids=(711, 712))).findings
    assert found.message == "GPU memory is in use before the job starts: 10% of GPU 0"


def test_inside_a_job_its_own_ranks_are_no_one_else() -> None:
    cases: tuple[dict[int, int | None] | None, ...] = ({711: 30 * GIB}, {711: None}, {}, None, {4000: None})
    for processes in cases:
        assert judge([gpu_in_use], node(40 * GIB, processes=processes, pids=(711,))).findings == []


def test_it_is_silent_about_what_the_driver_keeps_and_where_nobody_tells() -> None:
    for case in (node(GIB // 2, 0, None), node(GIB // 2, total=8 * GIB)):
        verdicts = judge([gpu_in_use], case).verdicts
        assert [verdict.outcome for verdict in verdicts] == [Outcome.PASSED]
    assert [verdict.outcome for verdict in judge([gpu_in_use], node()).verdicts] == [Outcome.SKIPPED]
