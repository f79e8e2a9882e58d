"""NC730: memory, time or a process of a GPU is in use before the job begins; what a driver keeps for itself is none."""

from __future__ import annotations

from collections.abc import Collection

from ncheck.facts.gpu_health import GpuHealth, GpuHealthFacts
from ncheck.facts.gpus import GpuFacts, GpuProcess
from ncheck.facts.ranks import RanksFacts
from ncheck.model.cluster import Facts
from ncheck.model.fact import Absent
from ncheck.model.finding import Finding, Outcome, Severity
from ncheck.parse.nvidia_smi import Gpu
from ncheck.steps.judge import judge
from ncheck_checks.measured.gpu_in_use import gpu_in_use

GIB = 2**30
ANNA, MPS = GpuProcess(4711, "python3", "anna"), GpuProcess(4712, "nvidia-cuda-mps", "root")
HIDDEN, ENDED = GpuProcess(4713), GpuProcess(4714, ended=True)
OWNERS = {one.pid: one for one in (ANNA, MPS, HIDDEN, ENDED)}


USES = "nvidia-smi pmon -c 1"


def node(  # noqa: PLR0913
    *used: int | None, total: int = 80 * GIB, processes: dict[int, int | None] | None = None,
    pids: tuple[int, ...] = (), busy: int = 0, persistence: int = 1, graphics: Collection[int] = (),
) -> dict[str, Facts]:  # fmt: skip
    cards = tuple(
        Gpu(
            index, "NVIDIA H100 80GB HBM3", memory_total=total, memory_used=bytes_used, processes=processes,
            graphics=tuple(graphics),
        )
        for index, bytes_used in enumerate(used)
    )  # fmt: skip
    gpus = GpuFacts(cards, "550.54", "12.4", "nvml", owners=OWNERS) if used else Absent("no NVIDIA GPU")
    health = tuple(GpuHealth(index, persistence=persistence) for index in range(len(used)))
    ranks = RanksFacts(1, (0,), pids) if pids else Absent("ncheck does not run inside a job")
    facts = GpuHealthFacts(health, busy={0: busy} if busy else {}) if used else Absent("no NVIDIA GPU")
    return {"n1": {GpuFacts: gpus, RanksFacts: ranks, GpuHealthFacts: facts}}


def found(nodes: dict[str, Facts]) -> list[tuple[str, str]]:
    return [(one.message, one.fix) for one in judge([gpu_in_use], nodes).findings]


def test_memory_in_use_is_told_for_each_gpu_that_has_it() -> None:
    assert judge([gpu_in_use], node(GIB // 2, 4 * GIB, 40 * GIB)).findings == [
        Finding("NC730", "gpu-in-use", Severity.WARNING, ("n1",),
                "2 GPUs are in use before the job starts, such as GPU 1: 5% of its memory",
                ("GPU 1: 5% of its memory", "GPU 2: 50% of its memory"), USES,
                kind="look", summary="GPUs are in use"),
    ]  # fmt: skip


def test_more_than_a_tenth_of_a_small_gpu_is_told_though_it_is_no_gibibyte() -> None:
    assert len(found(node(GIB, total=8 * GIB))) == 1


def test_who_uses_it_is_named_as_far_as_this_user_is_shown_it() -> None:
    start = "GPU 0 is in use before the job starts: "
    assert found(node(40 * GIB, processes={4711: 40 * GIB, 4713: None}, busy=98)) == [
        (f"{start}98% busy, 50% of its memory, pid 4711 python3 of user anna, pid 4713", USES)
    ]
    many: dict[int, int | None] = dict.fromkeys(range(1, 10))
    assert found(node(GIB // 2, processes={4711: GIB // 2})) == [(f"{start}pid 4711 python3 of user anna", USES)]
    assert found(node(GIB // 2, processes=many)) == [(f"{start}pid 1, pid 2, pid 3, pid 4, 5 more", USES)]


def test_what_no_living_process_has_is_told_as_such() -> None:
    start, who = "GPU 0 is in use before the job starts: ", "sudo fuser -v /dev/nvidia*"
    none = "no process is listed (one in another container, or one that died and left this behind)"
    assert found(node(20 * GIB, processes={})) == [(f"{start}25% of its memory, {none}", who)]
    assert found(node(0, processes={}, busy=100)) == [(f"{start}100% busy, {none}", who)]
    assert found(node(20 * GIB, processes={4714: 20 * GIB})) == [
        (f"{start}25% of its memory, pid 4714, which has ended", who)
    ]


def test_where_processes_are_not_known_nothing_is_said_of_them() -> None:
    start = "GPU 0 is in use before the job starts: "
    assert found(node(20 * GIB, busy=98)) == [(f"{start}98% busy, 25% of its memory", USES)]


def test_a_driver_that_wakes_up_a_desktop_a_server_of_mps_and_a_process_that_just_ended_are_no_use() -> None:
    for case in (
        node(0, processes={}, busy=100, persistence=0),  # it checks the memory
        node(0, busy=100, persistence=0),
        node(GIB // 2, processes={}, graphics=(1234,), busy=30),
        node(GIB // 2, processes={1234: GIB // 2}, graphics=(1234,), busy=30),
        node(GIB // 2, processes={4712: GIB // 16}),
        node(GIB // 2, processes={4714: GIB // 2}),  # it ended just now
    ):
        assert found(case) == []
    assert len(found(node(GIB, processes={4711: GIB}, busy=100, persistence=0))) == 1


def test_inside_a_job_only_what_others_use_is_told() -> None:
    processes: dict[int, int | None] = {711: 30 * GIB, 4711: 8 * GIB}
    assert found(node(40 * GIB, processes=processes, pids=(711, 712), busy=100)) == [
        (
            "GPU 0 is in use before the job starts: 10% of its memory, pid 4711 python3 of user anna",
            USES,
        )
    ]
    assert found(node(GIB // 2, processes={4711: GIB // 2}, pids=(711,), busy=70)) == [
        ("GPU 0 is in use before the job starts: 70% busy, pid 4711 python3 of user anna", USES)
    ]


def test_inside_a_job_its_own_ranks_are_no_one_else() -> None:
    cases: tuple[dict[int, int | None] | None, ...] = ({711: 30 * GIB}, {711: None}, None)
    for processes in cases:
        assert found(node(40 * GIB, processes=processes, pids=(711,), busy=100)) == []
    cases = ({}, {4000: None}, {4000: GIB // 2})
    for processes in cases:
        assert found(node(40 * GIB, processes=processes, pids=(711,))) == []


def test_it_is_silent_about_what_the_driver_keeps_and_where_nobody_tells() -> None:
    for case in (node(GIB // 2, 0, None), node(GIB // 2, total=8 * GIB), node(GIB // 2, processes={})):
        verdicts = judge([gpu_in_use], case).verdicts
        assert [verdict.outcome for verdict in verdicts] == [Outcome.PASSED]
    assert [verdict.outcome for verdict in judge([gpu_in_use], node()).verdicts] == [Outcome.SKIPPED]
