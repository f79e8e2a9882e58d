from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ncheck.model.cluster import FactType
from ncheck.model.fact import Unread
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.gpu_activity import GpuActivity, GpuActivityFacts, GpuLook
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.live.gpus import signs

from .jobs import cluster, spread

GIB = 1 << 30
WORKS = GpuLook(98, 40, 60 * GIB, 1900, 1980, 0x4, 650_000, 700_000, 60, 0)
WAITS = replace(WORKS, use=100, memory_use=0, power=200_000)
RESTS = replace(WORKS, use=0, memory_use=0, power=70_000, clock=345, throttled=0x1)


def gpu(index: int, look: GpuLook = WORKS, before: GpuLook | None = None, **words: Any) -> GpuActivity:
    """Return GPU 0 or 1 of a node, on which rank 0 or 1, or 2 or 3, computes: see `of`."""
    known: dict[str, Any] = {"memory_total": 80 * GIB, "errors": {}, **words}
    return GpuActivity(index, (before or look, look), f"0000:{index:02x}:00.0", index, **known)


def of(*gpus: GpuActivity) -> list[Sign]:
    """Return the signs of a job of four ranks on two nodes, GPU by GPU in their order."""
    named = [
        replace(one, index=at % 2, processes={4000 + at: 60 * GIB} if one.processes is None else one.processes)
        for at, one in enumerate(gpus)
    ]
    known: dict[str, dict[FactType, object]] = {
        f"node{at}": {GpuActivityFacts: GpuActivityFacts(tuple(named[2 * at : 2 * at + 2])),
                      ProcessesFacts: ProcessesFacts((), {})}
        for at in (0, 1)
    }  # fmt: skip
    return list(signs(spread(4), cluster(known)))


def clues(*gpus: GpuActivity) -> list[tuple[Any, ...]]:
    found = [one for one in of(*gpus) if isinstance(one, Clue)]
    return [(one.cause, one.grade, one.text, one.ranks, one.nodes, one.still, one.slow) for one in found]


def motions(*gpus: GpuActivity) -> list[tuple[Any, ...]]:
    return [(one.rank, one.moves, one.waits, one.text) for one in of(*gpus) if isinstance(one, Motion)]


R1 = "GPU 1 of node0, of rank 1 (pid 4001 on node0)"


def test_gpus_that_work_are_no_clue_and_move() -> None:
    assert clues(*map(gpu, range(4))) == []
    assert motions(*map(gpu, range(4)))[1] == (1, True, False, f"{R1} computes")


def test_a_gpu_that_is_busy_with_waiting_does_not_move() -> None:
    assert motions(gpu(0), gpu(1, WAITS)) == [
        (0, True, False, "GPU 0 of node0, of rank 0 (pid 4000 on node0) computes"),
        (1, False, True, f"{R1} is busy, moves no memory and takes little power: its kernel waits"),
    ]
    assert clues(gpu(0, WAITS), gpu(1, WAITS)) == []


def test_a_gpu_that_does_not_say_its_use_says_nothing() -> None:
    assert of(gpu(0, GpuLook()), gpu(1, GpuLook())) == []


def test_the_only_gpu_that_does_nothing_is_what_the_others_wait_for() -> None:
    assert clues(gpu(0, WAITS), gpu(1, RESTS), gpu(2, WAITS), gpu(3, WAITS)) == [
        ("gpu_idle", Grade.POSSIBLE, f"{R1} does nothing, the other 3 of the job are at least 100 % busy", (1,),
         ("node0",), True, False),
    ]  # fmt: skip


@pytest.mark.parametrize("gpus", [
    [gpu(at, RESTS) for at in range(4)],
    [gpu(0), gpu(1, RESTS), gpu(2), gpu(3, RESTS)],
    [gpu(0), gpu(1, RESTS, before=WORKS), gpu(2), gpu(3)],
    [gpu(0), gpu(1, RESTS, processes={}), gpu(2), gpu(3)],  # a GPU that the job does not use
])  # fmt: skip
def test_several_idle_gpus_a_moment_and_a_spare_gpu_are_no_lead(gpus: list[GpuActivity]) -> None:
    assert clues(*gpus) == []


def test_a_gpu_that_is_lost_is_the_cause() -> None:
    lost = gpu(1, GpuLook(), processes={}, errors={"nvmlDeviceGetHandleByIndex": "GPU is lost"})
    assert clues(gpu(0), lost) == [
        ("gpu_fault", Grade.CERTAIN, "GPU 1 of node0 does not answer: GPU is lost", (), ("node0",), False, False)
    ]


def test_memory_errors_are_certain_while_they_come_and_a_lead_later() -> None:
    after = replace(WORKS, ecc=3)
    assert clues(gpu(0), gpu(1, after, before=WORKS))[0][:3] == (
        "gpu_fault", Grade.CERTAIN, f"{R1} had 3 memory errors while it was watched that could not be corrected"
    )  # fmt: skip
    assert clues(gpu(0), gpu(1, after))[0][:2] == ("gpu_fault", Grade.POSSIBLE)


def test_a_gpu_that_is_too_hot_is_slow_and_one_at_its_power_limit_is_not() -> None:
    hot = replace(WORKS, clock=900, throttled=0x40)
    assert clues(gpu(0), gpu(1, hot)) == [
        ("slow_rank", Grade.LIKELY, f"{R1} runs at 900 MHz of 1980 MHz: slowed by temperature", (1,), ("node0",),
         False, True),
    ]  # fmt: skip
    capped = replace(WORKS, clock=1400, throttled=0x4)
    assert clues(*(gpu(at, capped) for at in range(4))) == []
    assert clues(gpu(0), gpu(1, RESTS)) == clues(gpu(0), gpu(1, replace(RESTS, throttled=0x40)))


def test_a_clock_below_that_of_the_others_is_a_lead() -> None:
    assert clues(gpu(0), gpu(1, replace(WORKS, clock=1000)), gpu(2), gpu(3))[0][:3] == (
        "slow_rank", Grade.POSSIBLE, f"{R1} runs at 1000 MHz of 1980 MHz, the others at 1900 MHz"
    )  # fmt: skip


def test_a_full_gpu_counts_if_a_stranger_has_a_part_of_it() -> None:
    full = replace(WORKS, memory_used=79 * GIB)
    assert clues(gpu(0), gpu(1, full)) == []
    assert clues(gpu(0), gpu(1, full, processes={4001: 60 * GIB, 99: 19 * GIB}))[0][:3] == (
        "gpu_oom", Grade.LIKELY, f"the memory of {R1} is full, and pid 99, not of this job, has 19 GiB of 80 GiB"
    )  # fmt: skip


def silent(why: object, held: tuple[str, ...] = ("nvidia0",)) -> list[Any]:
    known: dict[str, dict[FactType, object]] = {
        "node0": {GpuActivityFacts: why, ProcessesFacts: ProcessesFacts((), {4000: held})}, "node1": {}
    }  # fmt: skip
    return [(one.cause, one.grade, one.nodes) for one in signs(spread(2), cluster(known)) if isinstance(one, Clue)]


def test_a_driver_that_does_not_answer_is_a_lead_where_a_rank_holds_a_gpu() -> None:
    assert silent(Unread("no answer within 18 s", hung="the agent's gpu-activity")) == [
        ("gpu_fault", Grade.LIKELY, ("node0",))
    ]
    assert silent(Unread("nvmlInit: GPU is lost")) == [("gpu_fault", Grade.CERTAIN, ("node0",))]
    assert silent(Unread("pynvml is not installed")) == []
    assert silent(Unread("no answer", hung="x"), ()) == []


def test_in_a_container_the_open_device_says_whose_gpu_it_is() -> None:
    known: dict[str, dict[FactType, object]] = {
        "node0": {
            GpuActivityFacts: GpuActivityFacts((gpu(0),)),
            ProcessesFacts: ProcessesFacts((), {4000: ("nvidia0",)}),
        },
        "node1": {},
    }
    assert [one.rank for one in signs(spread(2), cluster(known)) if isinstance(one, Motion)] == [0]
