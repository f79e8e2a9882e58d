from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ncheck.model.cluster import FactType
from ncheck.model.fact import Unread
from ncheck.model.job import RankProcess
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion
from ncheck.triage.facts.activity import ActivityFacts, MountUse, ProcessActivity, Thread, Written
from ncheck.triage.live.activity import signs

from .jobs import cluster, job, process, rank, spread
from .watching import facts, seen, watched

R0, R1 = "rank 0 (pid 4000 on node0)", "rank 1 (pid 4001 on node0)"

IDLE: dict[str, Any] = {"cpu": 0.0, "traffic": 0}
NFS = MountUse("/data", "nfs4", "filer:/export", used="/data/train.bin")


def clues(*odd: Any, **words: Any) -> list[Clue]:
    return [one for one in signs(*seen(*odd, **words)) if isinstance(one, Clue)]


def motions(*odd: Any, **words: Any) -> list[tuple[int | None, bool, str]]:
    return [(one.rank, one.moves, one.text) for one in signs(*seen(*odd, **words)) if isinstance(one, Motion)]


def clue(cause: str, grade: Grade, text: str, **more: Any) -> Clue:
    """Return a clue about rank 1 on node0."""
    return Clue("processes", cause, grade, text, **{"ranks": (1,), "nodes": ("node0",), **more})


def test_a_job_that_works_has_no_clue_and_each_rank_moves() -> None:
    assert clues() == []
    assert motions()[0] == (0, True, f"{R0} computed and moved 1.05 MB in 2 s")
    assert [moves for _, moves, _ in motions()] == [True] * 4


def test_a_job_that_stands_still_is_no_clue_by_itself() -> None:
    assert clues(usual=IDLE) == []
    assert motions(usual=IDLE)[2] == (2, False, "rank 2 (pid 4002 on node1) used no CPU and moved no data in 2 s")


def test_a_rank_of_nccl_may_wait_as_busily_as_it_works() -> None:
    assert motions(gpus=True) == []
    assert motions(usual={"libraries": {"/opt/ompi/lib/libmpi.so.40": ""}}) == []
    assert motions(usual={"libraries": None}) == []


@pytest.mark.parametrize(("states", "how"), [
    ("TT", "stopped by a signal (state T)"), ("tt", "stopped by a debugger or a tracer (state t)"),
])  # fmt: skip
def test_a_stopped_rank_is_the_cause(states: str, how: str) -> None:
    assert clues(watched(4001, states=states, **IDLE)) == [
        clue("rank_stopped", Grade.CERTAIN, f"rank 1 (pid 4001 on node0) is {how}", still=False,
             fix="kill -CONT 4001" if states == "TT" else ""),
    ]  # fmt: skip


def test_a_rank_that_a_profiler_stops_for_a_moment_is_not_stopped() -> None:
    assert clues(watched(4001, states="tS")) == []


def test_a_rank_that_has_ended_is_named_with_the_signal() -> None:
    killed = watched(4001, states="ZZ", exit_code=9, **IDLE)
    assert clues(killed) == [
        clue("rank_crashed", Grade.CERTAIN, f"{R1} has ended by SIGKILL, and its parent did not collect it"
             " (state Z)", still=False, kind="killed"),
    ]  # fmt: skip
    assert motions(killed)[1] == (1, False, f"{R1} is in state Z")


def test_a_rank_that_ended_well_or_for_an_unknown_reason_counts_only_if_the_others_stand_still() -> None:
    assert clues(watched(4001, states="S")) == [clue("rank_crashed", Grade.LIKELY, f"{R1} has ended (state Z)")]


def test_a_rank_whose_first_thread_alone_has_ended_lives() -> None:
    assert clues(watched(4001, states="ZZ", thread_count=9)) == []


def test_a_rank_that_is_gone_is_named_unless_the_whole_job_has_ended() -> None:
    whole = spread(2)
    one_gone: dict[str, dict[FactType, object]] = {
        "node0": {ActivityFacts: facts((), gone=frozenset({4000}))},
        "node1": {ActivityFacts: facts([watched(4001)])},
    }
    assert next(signs(whole, cluster(one_gone))) == Clue(
        "processes", "rank_crashed", Grade.LIKELY, f"{R0} ended while triage looked at the job", (0,),
        ("node0",),
    )  # fmt: skip
    all_gone: dict[str, dict[FactType, object]] = {
        f"node{at}": {ActivityFacts: facts((), gone=frozenset({4000 + at}))} for at in (0, 1)
    }
    assert list(signs(whole, cluster(all_gone))) == []


def stuck(wait: str, **words: Any) -> Any:
    return watched(4001, states="DD", threads=(Thread(4001, "python3", ("D", "D"), 0, wait),), **{**IDLE, **words})


def test_a_rank_that_waits_for_a_network_file_system_is_named_with_the_mount() -> None:
    mounts = (MountUse("/", "ext4", "/dev/vda", used="/home/a"), NFS)
    text = (
        f"{R1} waits in the kernel and cannot be interrupted (state D, in rpc_wait_bit_killable),"
        " on /data (nfs4 filer:/export)"
    )
    assert clues(stuck("rpc_wait_bit_killable", mounts=mounts)) == [clue("storage_hang", Grade.LIKELY, text)]
    silent = {"/data/train": Unread("no answer within 1.5 s")}
    assert clues(stuck("rpc_wait_bit_killable", mounts=mounts), spaces=silent) == [
        clue("storage_hang", Grade.CERTAIN, text)
    ]


def test_a_rank_that_waits_for_the_driver_is_no_matter_of_storage() -> None:
    (found,) = clues(stuck("os_acquire_semaphore"))
    assert (found.cause, found.grade) == ("gpu_fault", Grade.POSSIBLE)


def test_a_thread_that_ran_between_two_waits_for_its_disk_is_not_stuck() -> None:
    threads = (Thread(4001, "python3", ("D", "D"), 5_000_000, "folio_wait_bit_common"),)
    assert clues(watched(4001, states="DD", threads=threads)) == []


def test_a_data_loader_that_hangs_on_its_mount_counts_for_its_rank() -> None:
    child = watched(5001, 4001, threads=(Thread(5001, "python3", ("D", "D"), 0, "request_wait_answer"),),
                    mounts=(MountUse("/s3", "fuse.s3fs", "s3fs", used="/s3/x"),))  # fmt: skip
    (found,) = clues(child)
    assert (found.cause, found.ranks) == ("storage_hang", (1,))
    assert found.text.startswith(f"pid 5001 (python3) beneath {R1} waits in the kernel")
    assert found.text.endswith("on /s3 (fuse.s3fs s3fs)")


def test_who_waits_for_fuse_sleeps_so_that_a_signal_can_wake_it_and_is_stuck_all_the_same() -> None:
    mounts = (MountUse("/ckpt", "fuse", "weka"),)
    waits = Thread(4001, "python3", ("S", "S"), 0, "request_wait_answer")
    (found,) = clues(watched(4001, threads=(waits,), mounts=mounts, **IDLE))
    text = f"{R1} waits in the kernel (state S, in request_wait_answer), on /ckpt (fuse weka)"
    assert found == clue("storage_hang", Grade.LIKELY, text)
    assert clues(watched(4001, threads=(replace(waits, ran=5_000_000),), mounts=mounts, **IDLE)) == []
    assert clues(watched(4001, threads=(replace(waits, wait="futex_do_wait"),), mounts=mounts, **IDLE)) == []


def test_a_data_loader_that_has_died_is_named() -> None:
    assert clues(watched(5001, 4001, states="ZZ", exit_code=9, **IDLE)) == [
        clue("data_loader", Grade.LIKELY, f"pid 5001 (python3) beneath {R1} has ended by SIGKILL, and"
             " its parent did not collect it (state Z)", kind="killed"),
    ]  # fmt: skip


def test_a_helper_that_has_ended_is_no_data_loader() -> None:
    assert clues(replace(watched(5001, 4001, states="ZZ"), name="git")) == []


def test_a_data_loader_that_is_stopped_is_named() -> None:
    (found,) = clues(watched(5001, 4001, states="TT", **IDLE))
    assert (found.cause, found.ranks, found.still) == ("data_loader", (1,), True)


def test_a_rank_with_fewer_data_loaders_than_all_others_is_a_lead() -> None:
    loaders = [watched(5000 + pid, pid) for pid in (4000, 4002, 4003)]
    assert clues(*loaders) == [clue("data_loader", Grade.POSSIBLE, f"{R1} has 0 data loaders, the others 1")]
    assert clues(*loaders[1:]) == []


def test_one_rank_whose_loaders_work_while_all_ranks_wait_is_slow_to_load() -> None:
    loaders = [watched(5000 + pid, pid, **IDLE) for pid in (4000, 4002, 4003)]
    text = f"data loaders of {R1} work (1), while all ranks wait"
    meaning = "the others wait for the data loaders of rank 1, which work"
    assert clues(watched(9001, 4001, cpu=1.9), *loaders, usual=IDLE) == [
        clue("data_loader", Grade.LIKELY, text, still=False, slow=True),
        clue("data_loader", Grade.POSSIBLE, text, works=True, meaning=meaning),
    ]


def test_one_busy_rank_among_waiting_ones_works_and_does_not_move_the_job() -> None:
    busy = watched(4001, cpu=2.0, traffic=9000)
    pace = f"{R1} uses 100% of a CPU, the others 0% to 0%"
    words = {"works": True, "meaning": "the others wait for rank 1, which works"}
    computes = {"works": True, "others": ("deadlock",), "meaning": "the others wait for rank 1, which computes"}
    assert clues(busy, usual=IDLE) == [
        clue("slow_rank", Grade.POSSIBLE, pace, still=False, slow=True, **words),
        clue("slow_rank", Grade.POSSIBLE, pace, **computes),
    ]
    assert [moves for _, moves, _ in motions(busy, usual=IDLE)] == [False] * 3
    starved = watched(4001, cpu=0.08, traffic=0, delay=19 * 10**8)
    pace = f"{R1} uses 4% of a CPU, the others 0% to 0%"
    assert clues(starved, usual=IDLE) == [clue("slow_rank", Grade.POSSIBLE, pace, **computes)]


CHILD = "pid 9001 (python3) beneath"


@pytest.mark.parametrize(("odd", "text"), [
    (watched(9001, 4001, cpu=1.9), f"{CHILD} {R1} computes"),
    (watched(9001, 4001, states="RR", cpu=0.07, traffic=0), f"{CHILD} {R1} computes"),
    (watched(9001, 4001, cpu=0.01, traffic=0, delay=10**9), f"{CHILD} {R1} computes"),
    (watched(9001, 4001, cpu=0.01, traffic=10**6), f"{CHILD} {R1} moved 1 MB in 2 s"),
    (watched(4001, cpu=0.1, traffic=0, rss=9 * 10**6), f"the memory of {R1} grew by 9 MB in 2 s"),
])  # fmt: skip
def test_what_works_for_a_rank_that_waits_is_said_and_does_not_move_the_job(odd: ProcessActivity, text: str) -> None:
    found = [one for one in signs(*seen(odd, usual=IDLE)) if isinstance(one, Motion) and one.aside]
    assert found == [Motion("processes", 1, "node0", moves=True, text=text, pid=4001, aside=True)]


def test_programs_beneath_a_rank_that_only_wait_work_on_nothing() -> None:
    idle = watched(9001, 4001, cpu=0.01, traffic=4000, rss=1 << 16)
    assert not [one for one in signs(*seen(idle, usual=IDLE)) if isinstance(one, Motion) and one.aside]


def test_one_idle_rank_among_those_that_spin_is_what_they_wait_for() -> None:
    assert clues(watched(4001, **IDLE), usual={"cpu": 2.0}, gpus=True) == [
        clue("deadlock", Grade.POSSIBLE, f"{R1} uses 0% of a CPU, the others 100% to 100%",
             others=("data_loader", "storage_hang", "slow_rank")),
    ]  # fmt: skip


def test_a_rank_that_writes_a_file_while_the_others_wait_is_at_a_checkpoint() -> None:
    writer = watched(4001, cpu=0.1, written=(Written("/ckpt/model.pt", 1_990_000_000, 2 * 10**9),))
    text = f"{R1} writes /ckpt/model.pt: 10 MB in 2 s, 2 GB so far"
    meaning = "the others wait for rank 1, which works: it writes a file"
    assert clues(writer, usual=IDLE) == [clue("checkpoint_write", Grade.POSSIBLE, text, works=True, meaning=meaning)]
    assert motions(writer, usual=IDLE)[1] == (1, True, f"{R1} wrote to /ckpt/model.pt")


def test_a_checkpoint_that_is_written_fast_is_work_of_the_whole_job() -> None:
    writer = watched(4001, cpu=0.1, written=(Written("/ckpt/model.pt", 10**9, 2 * 10**9),))
    assert clues(writer, usual=IDLE) == []
    text = f"{R1} writes /ckpt/model.pt: 1 GB in 2 s, 2 GB so far"
    assert (None, True, text) in motions(writer, usual=IDLE)


def test_output_and_a_checkpoint_of_all_ranks_are_no_clue() -> None:
    log = watched(4001, written=(Written("/home/a/log", 0, 10**9),))
    assert clues(log) == []
    assert clues(usual={"written": (Written("/ckpt/shard.pt", 0, 10**9),)}) == []


def test_a_launcher_that_is_stopped_is_named() -> None:
    mpirun = process(77, name="mpirun", state="T")
    stopped = job(rank(0, "node0"), rank(1, "node0"), launchers={"node0": (mpirun,)})
    assert [one for one in signs(*seen(job=stopped)) if isinstance(one, Clue)] == [
        Clue("processes", "rank_stopped", Grade.LIKELY, "mpirun (pid 77 on node0), which started ranks, is stopped by a"
             " signal (state T)", nodes=("node0",), fix="kill -CONT 77"),
    ]  # fmt: skip


def test_a_process_without_a_number_is_told_by_its_pid() -> None:
    holder = job(RankProcess(None, "node0", process(4001)))
    (found, _) = signs(*seen(watched(4001, states="TT"), job=holder))
    assert isinstance(found, Clue)
    assert (found.ranks, found.text) == ((), "process (pid 4001 on node0) is stopped by a signal (state T)")


def test_what_this_user_may_not_read_is_no_standstill() -> None:
    assert [number for number, _, _ in motions(watched(4001, read=None, cpu=0.0), ranks=3)] == [0, 2]
