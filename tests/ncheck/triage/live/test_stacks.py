"""Stacks of all ranks, by hand and of real processes: the one that others wait for is named, and no healthy job."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ncheck.model.fact import Unread
from ncheck.model.job import Job
from ncheck.triage.causes import CAUSES
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Sign
from ncheck.triage.facts.stacks import FileLock, Frame, ProcessStacks, PythonThread, StacksFacts, Task
from ncheck.triage.live.stacks import READS, signs

from tests.ncheck.triage.agent.test_stacks import with_py_spy
from tests.ncheck.triage.live.jobs import cluster, job, process, rank, spread
from tests.ncheck.triage.live.running import clues, motions, running

SITE = "/opt/venv/lib/python3.11/site-packages/"


def library(function: str, file: str, line: int = 7) -> Frame:
    return Frame(function, SITE + file, file, line)


def own(function: str, line: int, source: str = "") -> Frame:
    return Frame(function, "/home/ann/train.py", "train.py", line, source)


MAIN = own("<module>", 90)
TRAIN = own("train", 40)


def collective(function: str = "all_reduce", line: int = 40) -> tuple[Frame, ...]:
    return (library(function, "torch/distributed/distributed_c10d.py"), own("train", line), MAIN)


WAITS = collective()
LOADS = (
    Frame("poll", "/usr/lib/python3.11/selectors.py", "selectors.py", 415),
    library("_MultiProcessingDataLoaderIter._try_get_data", "torch/utils/data/dataloader.py"),
    library("_BaseDataLoaderIter.__next__", "torch/utils/data/dataloader.py"), own("train", 33), MAIN,
)  # fmt: skip
SAVES = (library("_save", "torch/serialization.py"), library("save", "torch/serialization.py"), own("save", 60), MAIN)
LOCKED = (own("step", 12, "with lock:"), MAIN)
COMPUTES = (own("step", 12, "x = x @ x"), MAIN)
BACKWARD = (library("_engine_run_backward", "torch/autograd/graph.py"), TRAIN, MAIN)
ITEM = (own("train", 44, "total += loss.item()"), MAIN)


def looked(pid: int, *looks: Sequence[Frame], busy: float = 0.0, sleeps: int = 0, **words: Any) -> ProcessStacks:
    """Return a process that was at each of these places, one look after the other; at the last one for all the rest."""
    task = {name: words.pop(name) for name in ("call", "file", "wchan") if name in words}
    state = words.pop("state", "S")
    holds = words.pop("gil", False)
    other = words.pop("other", ())
    threads = [(*other, PythonThread("MainThread", tuple(look), pid, idle=True, gil=holds)) for look in looks]
    threads += [threads[-1]] * (4 - len(threads))
    before, after = (
        Task(pid, "python3", state, cpu, slept, **task) for cpu, slept in ((5.0, 9), (5 + 2 * busy, 9 + sleeps))
    )
    return ProcessStacks(pid, tuple(threads), (), (before,), (after,), 2.0, **words)


def said(of: Job, at: Mapping[int, ProcessStacks], children: Sequence[ProcessStacks] = ()) -> list[Sign]:
    """Return the signs of a job whose ranks are at these places, by rank."""
    known: dict[str, dict[int, ProcessStacks]] = {one.node: {it.pid: it for it in children} for one in of.ranks}
    for one in of.ranks:
        if one.rank is not None and one.rank in at:
            known[one.node][one.pid] = at[one.rank]
    return list(signs(of, cluster({node: {StacksFacts: StacksFacts(found)} for node, found in known.items()})))


def at(of: Job, usual: Sequence[Frame], **odd: ProcessStacks) -> dict[int, ProcessStacks]:
    """Return all ranks at one place, but for some: r3=..."""
    return {one.rank: odd.get(f"r{one.rank}") or looked(one.pid, usual) for one in of.ranks if one.rank is not None}


def accused(found: Sequence[Sign]) -> list[tuple[str, Grade, tuple[int, ...]]]:
    return [(one.cause, one.grade, one.ranks) for one in clues(list(found))]


@pytest.mark.parametrize(
    ("place", "words", "cause", "grade", "doing"),
    [
        (LOADS, {}, "data_loader", Grade.LIKELY, "waits for its data loader at train.py:33 in train"),
        (SAVES, {}, "checkpoint_write", Grade.LIKELY, "writes a checkpoint at train.py:60 in save"),
        (SAVES, {"call": "write", "file": "/ckpt/a.pt", "state": "D"}, "storage_hang", Grade.LIKELY,
         "waits for a file system, in /ckpt/a.pt at train.py:60 in save"),
        (LOCKED, {}, "deadlock", Grade.LIKELY,
         'waits for a lock, a queue or a thread at train.py:12 in step ("with lock:")'),
        (COMPUTES, {}, "deadlock", Grade.LIKELY, 'is at train.py:12 in step ("x = x @ x")'),
        (COMPUTES, {"busy": 1.0}, "slow_rank", Grade.POSSIBLE, 'computes at train.py:12 in step ("x = x @ x")'),
        (COMPUTES, {"busy": 1.0, "gil": True}, "slow_rank", Grade.POSSIBLE,
         'computes at train.py:12 in step ("x = x @ x"), and does not release the GIL'),
        (COMPUTES, {"busy": 0.3, "sleeps": 30}, "slow_rank", Grade.POSSIBLE,
         'is at train.py:12 in step ("x = x @ x")'),
        ((own("step", 12, "time.sleep(99)"), MAIN), {}, "slow_rank", Grade.LIKELY,
         'sleeps at train.py:12 in step ("time.sleep(99)")'),
        ((Frame("_wait", "/usr/lib/python3.11/subprocess.py", "subprocess.py", 1), TRAIN), {}, "slow_rank",
         Grade.LIKELY, "waits for a program that it started at train.py:40 in train"),
        ((Frame("readline", "/usr/lib/python3.11/cmd.py", "cmd.py", 1), TRAIN), {}, "rank_stopped", Grade.CERTAIN,
         "waits for a person, in a debugger or for input at train.py:40 in train"),
        ((Frame("_shutdown", "/usr/lib/python3.11/threading.py", "threading.py", 1590),), {}, "rank_crashed",
         Grade.LIKELY, "is ending at threading.py:1590 in _shutdown"),
        ((own("log", 3, "print(loss)"), MAIN), {"call": "write", "file": "pipe:[9]"}, "deadlock", Grade.LIKELY,
         "waits for the reader of its output at train.py:3 in log"),
        ((library("get", "requests/api.py"), TRAIN), {}, "slow_rank", Grade.LIKELY,
         "talks to a server outside the job (requests) at train.py:40 in train"),
        ((library("_load", "torch/serialization.py"), TRAIN), {}, "slow_rank", Grade.LIKELY,
         "loads a checkpoint at train.py:40 in train"),
        ((own("score", 5), own("evaluate", 4), MAIN), {}, "slow_rank", Grade.LIKELY,
         "evaluates at train.py:5 in score"),
        ((Frame("_find_and_load", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>", 1), MAIN), {},
         "slow_rank", Grade.LIKELY, "imports modules at train.py:90 in <module>"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ranks", [2, 8])
def test_the_rank_that_all_others_wait_for_is_named(  # noqa: PLR0913, PLR0917  one position
    place: Sequence[Frame], words: dict[str, Any], cause: str, grade: Grade, doing: str, ranks: int
) -> None:
    of = spread(ranks)
    found = said(of, at(of, WAITS, r1=looked(4001, place, **words)))
    (clue,) = clues(found)
    rest = "1 other rank waits" if ranks == 2 else "7 other ranks wait"
    node = of.ranks[1].node
    assert clue.text == f"rank 1 (pid 4001 on {node}) {doing}, while {rest}"
    assert (clue.cause, clue.grade, clue.ranks, clue.nodes, clue.still) == (cause, grade, (1,), (node,), True)
    assert {clue.cause, *clue.others} <= set(CAUSES)
    assert motions(found)[0] == (False, True)
    assert motions(found).get(1) == (None if words.get("busy") else (False, False))
    assert clue.works == bool(words.get("busy"))


@pytest.mark.parametrize(
    "waits",
    [
        WAITS, BACKWARD, ITEM, collective("barrier"), (library("synchronize", "horovod/torch/mpi_ops.py"), TRAIN),
        (library("_verify_param_shape_across_processes", "torch/distributed/utils.py"), TRAIN),
        (library("_wait_for", "torch/distributed/elastic/rendezvous/dynamic_rendezvous.py"), TRAIN),
        (library("init_process_group", "torch/distributed/distributed_c10d.py"), TRAIN),
        (own("train", 4, "comm.Allreduce(MPI.IN_PLACE, grads)"), MAIN),
        (own("train", 4, "MPI.COMM_WORLD.barrier()"), MAIN),
        (library("unshard", "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py"), TRAIN),
        (own("train", 4, "handle.wait()"), MAIN),
        # an exit handler that still talks to the others
        (WAITS[0], Frame("_exit_function", "/usr/lib/python3.11/multiprocessing/util.py", "util.py", 1)),
    ],
)  # fmt: skip
def test_waiting_for_others_is_an_echo_and_blames_nobody(waits: Sequence[Frame]) -> None:
    of = spread(8)
    found = said(of, at(of, waits))
    assert accused(found) == []
    assert set(motions(found).values()) == {(False, True)}
    (echo,) = (one for one in found if isinstance(one, Clue))
    assert (echo.cause, echo.grade, echo.ranks) == ("slow_rank_timeout", Grade.ECHO, ())
    assert accused(said(of, at(of, waits, r5=looked(4005, LOCKED)))) == [("deadlock", Grade.LIKELY, (5,))]


def test_several_ranks_at_one_place_are_one_answer() -> None:
    of = spread(8)
    odd = {f"r{number}": looked(4000 + number, LOADS) for number in (2, 3, 5)}
    (clue,) = clues(said(of, at(of, WAITS, **odd)))
    assert (clue.cause, clue.ranks, clue.nodes) == ("data_loader", (2, 3, 5), ("node0", "node1"))
    assert clue.text.startswith("each of the ranks 2-3, 5 waits for its data loader at train.py:33 in train")


def test_ranks_in_different_collectives_diverge_and_the_odd_one_is_blamed() -> None:
    of = spread(8)
    assert accused(said(of, at(of, WAITS, r6=looked(4006, collective("all_gather", 70))))) == [
        ("collective_mismatch", Grade.LIKELY, (6,))
    ]
    assert accused(said(of, at(of, WAITS, r6=looked(4006, collective("all_reduce", 70))))) == [
        ("collective_mismatch", Grade.POSSIBLE, (6,))
    ]
    pipeline = at(of, collective("recv"), r6=looked(4006, collective("all_reduce", 70)))
    assert accused(said(of, pipeline)) == [("collective_mismatch", Grade.POSSIBLE, (6,))]


def mpi(line: str) -> tuple[Frame, ...]:
    return (own("exchange", 9, line), MAIN)


def test_ranks_that_wait_for_each_other_are_blamed_and_not_who_waits_for_them() -> None:
    of = spread(3)
    receives = (library("recv", "torch/distributed/distributed_c10d.py"), own("swap", 9, "dist.recv(x, src=1 - rank)"))
    (clue,) = clues(said(of, at(of, receives, r2=looked(4002, WAITS))))
    assert (clue.cause, clue.grade, clue.ranks) == ("deadlock", Grade.LIKELY, (0, 1))
    assert clue.meaning == "ranks wait for each other: each waits to receive, and none sends"


@pytest.mark.parametrize(
    ("sends", "receives", "cause", "meaning"),
    [
        ("comm.Send(x, dest=1, tag=7)", "comm.Recv(x, source=0, tag=8)", "collective_mismatch",
         "rank 1 waits for another message than rank 0 sends: the tags are 7 and 8"),
        ("comm.Send(x, dest=1)", "comm.Recv(x, source=2)", "collective_mismatch",
         "rank 0 sends to rank 1, which waits to receive from rank 2"),
        ("comm.Send(x, dest=1)", "comm.Send(x, dest=0)", "deadlock",
         "ranks wait for each other: each waits to send, and none receives"),
    ],
)  # fmt: skip
def test_messages_that_do_not_meet_are_read_off_the_code_of_ranks_that_wait_busily(
    sends: str, receives: str, cause: str, meaning: str
) -> None:
    of = spread(3)
    busy: dict[str, Any] = {"busy": 0.3, "state": "R"}  # as much as a machine with others on it gives them
    known = {"r0": looked(4000, mpi(sends), **busy), "r1": looked(4001, mpi(receives), **busy)}
    found = said(of, at(of, (), r2=looked(4002, mpi("comm.Barrier()"), **busy), **known))
    (clue,) = clues(found)
    assert (clue.cause, clue.grade, clue.ranks, clue.meaning) == (cause, Grade.LIKELY, (0, 1), meaning)


@pytest.mark.parametrize(("line", "meaning"), [
    ("comm.Send(x, dest=following)", "ranks wait for each other: each waits to send, and none receives"),
    ("comm.Recv(x, source=previous)", "ranks wait for each other: each waits to receive, and none sends"),
])  # fmt: skip
def test_a_ring_of_sends_whose_code_names_nobody_is_one_sentence(line: str, meaning: str) -> None:
    of = spread(4)
    (clue,) = clues(said(of, at(of, mpi(line))))
    assert (clue.cause, clue.grade, clue.ranks, clue.meaning) == ("deadlock", Grade.LIKELY, (0, 1, 2, 3), meaning)


def test_ranks_that_are_each_in_another_group_wait_in_a_ring() -> None:
    of = spread(3)
    reduce = library("all_reduce", "torch/distributed/distributed_c10d.py")

    def place(line: int, group: str) -> tuple[Frame, ...]:
        return (reduce, own("train", line, f"dist.all_reduce(x, group={group})"), MAIN)

    groups = {f"r{number}": looked(4000 + number, place(40 + number, f"groups[{number}]")) for number in range(3)}
    (clue,) = clues(said(of, at(of, (), **groups)))
    assert (clue.cause, clue.grade, clue.ranks) == ("deadlock", Grade.LIKELY, (0, 1, 2))
    assert clue.meaning == (
        "ranks wait for each other in a ring: each is in a collective of another group, and none is whole"
    )
    two = {**groups, "r2": looked(4002, place(41, "groups[1]"))}  # one of these groups may be complete
    assert [grade for _, grade, _ in accused(said(of, at(of, (), **two)))] == [Grade.POSSIBLE]


def test_the_same_call_of_another_communicator_is_told_from_the_same_call_elsewhere() -> None:
    of = spread(3)
    found = [
        accused(said(of, at(of, mpi(usual), r1=looked(4001, (own("train", 41, odd), MAIN)))))[0]
        for usual, odd in (("WORLD.Barrier()", "PAIR.Barrier()"), ("comm.barrier()", "self.rows_comm.barrier()"),
                           ("WORLD.Barrier()", "WORLD.Barrier()"))
    ]  # fmt: skip
    assert found == [("collective_mismatch", it, (1,)) for it in (Grade.LIKELY, Grade.LIKELY, Grade.POSSIBLE)]
    modules = {
        "r1": looked(4001, (library("barrier", "torch/distributed/distributed_c10d.py"), own("f", 1, "d.barrier()")))
    }
    usual = (library("barrier", "torch/distributed/distributed_c10d.py"), own("g", 2, "torch.distributed.barrier()"))
    assert accused(said(of, at(of, usual, **modules))) == [("collective_mismatch", Grade.POSSIBLE, (1,))]


def test_messages_of_which_the_code_says_too_little_blame_nobody_for_sure() -> None:
    of = spread(3)
    pipeline = at(of, mpi("comm.Recv(x, source=previous)"), r2=looked(4002, mpi("comm.Send(x, dest=following)")))
    assert [grade for _, grade, _ in accused(said(of, pipeline))] == [Grade.POSSIBLE]


def test_a_rank_that_ends_its_process_group_before_the_others_did_fewer_steps() -> None:
    of = spread(3)
    ends = (library("destroy_process_group", "torch/distributed/distributed_c10d.py"), own("main", 60), MAIN)
    (clue,) = clues(said(of, at(of, BACKWARD, r2=looked(4002, ends))))
    assert (clue.cause, clue.grade, clue.ranks) == ("collective_mismatch", Grade.LIKELY, (2,))
    assert clue.meaning.startswith("the ranks did different numbers of steps")


def test_a_lock_on_a_file_names_its_holder() -> None:
    of = spread(2)
    waits = looked(4001, (own("read", 12, "fcntl.flock(file, LOCK_EX)"), MAIN), call="flock", file="/data/a.lock")
    known = at(of, WAITS, r1=waits)
    node = of.ranks[1].node
    facts = {one.node: StacksFacts({one.pid: known[one.rank or 0]}) for one in of.ranks}
    facts[node] = StacksFacts(
        {**{it.pid: known[it.rank or 0] for it in of.on(node)}}, locks={4001: FileLock(77, "tar")}
    )
    (clue,) = clues(list(signs(of, cluster({name: {StacksFacts: one} for name, one in facts.items()}))))
    assert (clue.cause, clue.ranks) == ("deadlock", (1,))
    assert clue.text == (
        f"rank 1 (pid 4001 on {node}) waits for the lock on /data/a.lock at train.py:12 in read"
        f' ("fcntl.flock(file, LOCK_EX)"), which process 77 (tar) on {node} holds, while 1 other rank waits'
    )
    assert clue.fix == "ps -o pid,user,etime,args -p 77"


def of_locks(of: Job, at: Mapping[int, ProcessStacks], **words: Any) -> list[Clue]:
    """Return what is said of ranks on one node."""
    facts = StacksFacts({one.pid: at[one.rank or 0] for one in of.ranks}, **words)
    return clues(list(signs(of, cluster({"node0": {StacksFacts: facts}}))))


@pytest.mark.parametrize("named", [True, False])
def test_the_holder_of_a_lock_that_waits_in_a_barrier_itself_is_named_with_the_rank_that_waits_for_it(
    *, named: bool
) -> None:
    of = spread(2, 1)
    library_waits = (library("acquire", "filelock/_api.py"), own("load", 12), MAIN)
    flock: dict[str, Any] = {"call": "flock", "file": "/data/a.lock"} if named else {}
    known = at(of, WAITS, r1=looked(4001, COMPUTES if named else library_waits, **flock))
    locks = {4001: FileLock(4000, "python3")} if named else {}
    (clue,) = of_locks(of, known, locks=locks, held={4000: ("/data/a.lock",)})
    assert (clue.cause, clue.grade, clue.ranks) == ("deadlock", Grade.LIKELY, (1, 0))
    assert clue.meaning == (
        "ranks wait for each other: rank 0 (pid 4000 on node0) holds the lock on /data/a.lock and waits in all_reduce"
        " at train.py:40 in train, which another rank never reaches"
    )


def test_a_lock_file_that_no_process_holds_is_named_and_one_of_a_build_that_goes_on_accuses_nobody() -> None:
    of = spread(2, 1)
    waits = (library("wait", "torch/utils/file_baton.py"), own("build", 12), MAIN)
    known = at(of, WAITS, r1=looked(4001, waits, sleeps=20))
    file = "/root/.cache/torch_extensions/py311_cpu/ops/lock"
    (left,) = of_locks(of, known, locks={4001: FileLock(0, "", file)})
    assert (left.cause, left.grade, left.ranks, left.fix) == ("deadlock", Grade.LIKELY, (1,), f"rm {file}")
    assert left.meaning == f"a rank waits for the lock file {file}, which no process holds"
    (built,) = of_locks(of, known)
    assert (built.cause, built.grade, built.ranks, built.works) == ("slow_rank", Grade.POSSIBLE, (1,), True)


def test_of_two_ranks_in_different_collectives_neither_is_blamed() -> None:
    of = spread(2)
    (clue,) = clues(said(of, at(of, WAITS, r1=looked(4001, collective("barrier", 41)))))
    assert (clue.cause, clue.ranks, clue.nodes) == ("collective_mismatch", (), ())
    assert clue.text == (
        "the ranks wait in different places: rank 1 (pid 4001 on node1) waits in barrier at train.py:41 in train; "
        "rank 0 (pid 4000 on node0) waits in all_reduce at train.py:40 in train"
    )


def test_a_healthy_job_is_not_accused() -> None:
    of = spread(4)
    moving = [looked(one.pid, COMPUTES, BACKWARD, WAITS, ITEM, busy=0.6, sleeps=90) for one in of.ranks]
    found = said(of, dict(enumerate(moving)))
    assert [one for one in found if isinstance(one, Clue)] == []
    assert motions(found) == dict.fromkeys(range(4), (True, False))


@pytest.mark.parametrize("kind", [LOADS, LOCKED, COMPUTES, SAVES])
def test_a_rank_that_is_met_elsewhere_by_chance_is_not_accused(kind: Sequence[Frame]) -> None:
    """All looks met it at one place, but it computed and slept often between them; and the others go on, too."""
    of = spread(4)
    met = at(of, WAITS, r2=looked(4002, kind, busy=0.3, sleeps=80))
    for number in (0, 1, 3):
        met[number] = looked(4000 + number, WAITS, COMPUTES, WAITS, busy=0.3, sleeps=80)
    assert accused(said(of, met)) == []


def test_what_waits_at_one_place_but_works_between_the_looks_moves() -> None:
    of = spread(2)
    found = said(of, {number: looked(4000 + number, WAITS, busy=0.4, sleeps=300) for number in range(2)})
    assert [one for one in found if isinstance(one, Clue)] == []
    assert motions(found) == {0: (True, False), 1: (True, False)}


def test_library_code_that_looks_again_and_again_does_not_move() -> None:
    of = spread(2)
    polls = [(Frame("select", "/usr/lib/python3.11/selectors.py", "selectors.py", line), *LOADS[1:]) for line in (4, 9)]
    assert accused(said(of, at(of, WAITS, r1=looked(4001, *polls, sleeps=3)))) == [("data_loader", Grade.LIKELY, (1,))]


def test_a_loop_is_named_where_all_others_wait_and_only_there() -> None:
    of = spread(4)
    loops = looked(4001, (own("spin", 12), MAIN), (own("spin", 13), MAIN), busy=0.98)
    (clue,) = clues(said(of, at(of, WAITS, r1=loops)))
    assert (clue.cause, clue.grade, clue.ranks, clue.works) == ("slow_rank", Grade.POSSIBLE, (1,), True)
    assert clue.text == "rank 1 (pid 4001 on node0) loops at train.py:13 in spin, while 3 other ranks wait"
    others = at(of, WAITS, r1=loops, r2=looked(4002, COMPUTES, BACKWARD, busy=0.9))
    assert accused(said(of, others)) == []


def test_one_rank_that_works_while_all_others_wait_is_slow() -> None:
    of = spread(4)
    works = looked(4001, COMPUTES, (own("relu", 3), own("layer", 8), MAIN), busy=0.9)
    assert accused(said(of, at(of, WAITS, r1=works))) == [("slow_rank", Grade.POSSIBLE, (1,))]
    saves = looked(4001, SAVES, (own("serialize", 3), *SAVES), busy=0.9)
    (clue,) = clues(said(of, at(of, WAITS, r1=saves)))
    assert (clue.cause, clue.grade, clue.works) == ("checkpoint_write", Grade.POSSIBLE, True)
    assert clue.meaning == "the others wait for rank 1, which works: it writes a checkpoint"


def test_a_rank_that_is_at_work_at_each_look_is_slow_in_a_job_that_gets_on() -> None:
    of = spread(3)
    waits = {f"r{number}": looked(4000 + number, *[WAITS] * 7, LOADS, busy=0.1, sleeps=30) for number in (0, 2)}
    slow = looked(4001, *[COMPUTES] * 8, busy=0.8, sleeps=20)
    (clue,) = (one for one in clues(said(of, at(of, (), r1=slow, **waits))) if one.slow)
    assert (clue.cause, clue.grade, clue.ranks, clue.still) == ("slow_rank", Grade.LIKELY, (1,), False)
    assert clue.text == (
        f"rank 1 (pid 4001 on {of.ranks[1].node}) was at work at 8 of 8 looks, last seen at train.py:12 in step"
        ' ("x = x @ x"), while each of the others waited at 7 or more'
    )


def test_ranks_that_take_turns_are_not_slow() -> None:
    of = spread(2)
    first, second = ([WAITS, COMPUTES, WAITS, WAITS, COMPUTES, WAITS, WAITS, COMPUTES][at:] for at in (0, 2))
    turns = {"r0": looked(4000, *first, busy=0.4, sleeps=30), "r1": looked(4001, *second, busy=0.4, sleeps=30)}
    assert [one for one in clues(said(of, at(of, (), **turns))) if one.slow] == []


def test_what_comes_to_no_end_by_itself_is_sure_and_a_loop_that_calls_something_is_not() -> None:
    of = spread(3)
    matches = looked(4001, (own("clean", 8, "PATTERN.sub('', text)"), MAIN), busy=1.0)
    circles = [(own("spin", line, source), MAIN) for line, source in ((3, "while free < 1:"), (4, "tries += 1"))]
    calls = [(own("spin", line, source), MAIN) for line, source in ((3, "while free < 1:"), (4, "tries += step()"))]
    comes_to_an_end = (own("build", 5, "table = [{'text': line, 'n': n} for n, line in rows]"), MAIN)
    found = [
        accused(said(of, at(of, WAITS, r1=process)))[0][:2]
        for process in (matches, *(looked(4001, *lines * 2, busy=1.0, gil=True)
                                   for lines in (circles, calls, [comes_to_an_end])))
    ]  # fmt: skip
    assert found == [("deadlock", Grade.LIKELY)] * 2 + [("slow_rank", Grade.POSSIBLE)] * 2


@pytest.mark.parametrize(("ran", "waited", "works"), [
    (0.05, 1.9, True),  # what is ready all the time computes: others have the CPU
    (0.05, 0.0, False),
    (0.05, 0.1, False),
])  # fmt: skip
def test_a_rank_that_gets_little_of_a_crowded_cpu_works(ran: float, waited: float, *, works: bool) -> None:
    of = spread(3)
    looks = ((PythonThread("MainThread", COMPUTES, 4001),),) * 8
    first, last = (Task(4001, "python3", "R", 5 + cpu, 9, delay=7 + delay) for cpu, delay in ((0, 0), (ran, waited)))
    found = said(of, at(of, WAITS, r1=ProcessStacks(4001, looks, (), (first,), (last,), 2.0)))
    grade, cause = (Grade.POSSIBLE, "slow_rank") if works else (Grade.LIKELY, "deadlock")
    (clue,) = clues(found)
    assert (clue.cause, clue.grade, clue.works) == (cause, grade, works)
    assert motions(found).get(1) == (None if works else (False, False))


def test_a_program_that_computes_for_a_rank_is_what_the_others_wait_for() -> None:
    of = job(rank(0, "node0", children=(process(5000),)), rank(1, "node0"), rank(2, "node0"))
    starts = (Frame("wait", "/usr/lib/python3.11/subprocess.py", "subprocess.py", 1), own("build", 5), MAIN)
    for share, grade, works in ((0.9, Grade.POSSIBLE, True), (0.0, Grade.LIKELY, False)):
        known = at(of, WAITS, r0=looked(4000, starts))
        (clue,) = clues(said(of, known, [looked(5000, COMPUTES, busy=share)]))
        assert (clue.cause, clue.grade, clue.ranks, clue.works) == ("slow_rank", grade, (0,), works)


def test_a_stopped_rank_is_named_whatever_it_was_at() -> None:
    of = spread(4)
    found = said(of, at(of, WAITS, r3=looked(4003, WAITS, state="T")))
    (clue,) = clues(found)
    assert (clue.cause, clue.grade, clue.ranks, clue.still) == ("rank_stopped", Grade.CERTAIN, (3,), False)
    assert (clue.text, clue.fix) == ("rank 3 (pid 4003 on node1) is stopped (state T)", "kill -CONT PID")
    assert motions(found)[3] == (False, False)


def test_a_thread_that_keeps_the_gil_is_named() -> None:
    hog = PythonThread("hog", (own("hog", 70, "re.match(p, s)"),), 77, gil=True)
    of = spread(2)
    (clue,) = clues(said(of, at(of, WAITS, r1=looked(4001, WAITS, other=(hog,), sleeps=400))))
    assert (clue.cause, clue.ranks) == ("deadlock", (1,))
    assert clue.text == (
        "rank 1 (pid 4001 on node1) does not release the GIL: its thread hog is at train.py:70 in hog, "
        "while 1 other rank waits"
    )


def test_two_threads_that_wait_for_each_others_lock_are_both_shown() -> None:
    other = PythonThread("Thread-1", (own("flush", 8, "with self.lock:"),), 77)
    of = spread(2)
    (clue,) = clues(said(of, at(of, WAITS, r1=looked(4001, LOCKED, other=(other,)))))
    assert "; another thread waits for a lock, a queue or a thread at train.py:8 in flush" in clue.text


def test_a_thread_that_does_the_work_of_a_waiting_main_thread_counts() -> None:
    work = PythonThread("Thread-1", WAITS, 77, idle=True)
    joins = (Frame("join", "/usr/lib/python3.11/threading.py", "threading.py", 1), MAIN)
    of = spread(2)
    assert accused(said(of, at(of, WAITS, r1=looked(4001, joins, other=(work,))))) == []


WORKER = (
    library("_worker_loop", "torch/utils/data/_utils/worker.py"),
    Frame("_bootstrap", "/usr/lib/python3.11/multiprocessing/process.py", "multiprocessing/process.py", 1), *LOADS,
)  # fmt: skip
IDLE = (Frame("get", "/usr/lib/python3.11/multiprocessing/queues.py", "multiprocessing/queues.py", 1), *WORKER)
READS_FILE = (own("__getitem__", 15, "file.read()"), library("fetch", "torch/utils/data/_utils/fetch.py"), *WORKER)


@pytest.mark.parametrize(
    ("child", "state", "cause", "grade", "detail"),
    [
        (looked(5000, IDLE), "S", "data_loader", Grade.LIKELY, "its 1 workers wait for work themselves"),
        (looked(5000, READS_FILE), "S", "data_loader", Grade.LIKELY,
         'its worker (pid 5000) is at train.py:15 in __getitem__ ("file.read()")'),
        (looked(5000, READS_FILE, call="read", file="/data/a.tar", state="D"), "S", "storage_hang", Grade.LIKELY,
         "its worker (pid 5000) waits for a file system, in /data/a.tar"),
        (looked(5000, READS_FILE, state="T"), "T", "data_loader", Grade.CERTAIN,
         "its worker (pid 5000) is stopped (state T)"),
        (looked(5000, READS_FILE, busy=0.7), "R", "data_loader", Grade.LIKELY,
         'its worker (pid 5000) works at train.py:15 in __getitem__ ("file.read()")'),
        (ProcessStacks(5000, Unread("no py-spy"), gone=True), "Z", "data_loader", Grade.LIKELY,
         "its worker (pid 5000) is dead"),
    ],
)  # fmt: skip
def test_the_workers_of_a_data_loader_say_why_it_brings_nothing(
    child: ProcessStacks, state: str, cause: str, grade: Grade, detail: str
) -> None:
    of = job(rank(0, "node0"), rank(1, "node0", children=(process(5000, state=state),)))
    (clue,) = clues(said(of, at(of, WAITS, r1=looked(4001, LOADS)), [child]))
    assert (clue.cause, clue.grade, clue.ranks) == (cause, grade, (1,))
    assert clue.text.partition("; ")[2] == f"{detail}, while 1 other rank waits"


def test_a_loader_that_all_ranks_wait_for_slows_the_job_down_if_it_works() -> None:
    of = job(*(rank(number, "node0", children=(process(5000 + number),)) for number in range(2)))
    works = [looked(5000 + number, READS_FILE, busy=0.9) for number in range(2)]
    found = said(of, at(of, LOADS), works)
    assert [(one.cause, one.slow, one.still) for one in clues(found)] == [("data_loader", True, False)]
    assert motions(found) == {0: (True, False), 1: (True, False)}
    stuck = [looked(5000 + number, READS_FILE) for number in range(2)]
    assert [(one.cause, one.slow, one.still) for one in clues(said(of, at(of, LOADS), stuck))] == [
        ("data_loader", False, True)
    ]


def test_a_rank_that_only_starts_another_program_is_where_that_one_is() -> None:
    of = job(rank(0, "node0"), rank(1, "node0", children=(process(5000),)))
    starts = (Frame("wait", "/usr/lib/python3.11/subprocess.py", "subprocess.py", 1), own("main", 5))
    assert accused(said(of, at(of, WAITS, r1=looked(4001, starts)), [looked(5000, WAITS)])) == []


def test_without_a_rank_that_waits_the_minority_is_only_possible() -> None:
    of = spread(8)
    found = said(of, at(of, (own("train", 41), MAIN), r3=looked(4003, LOCKED)))
    assert accused(found) == [("deadlock", Grade.POSSIBLE, (3,))]
    assert accused(said(of, at(of, (own("train", 41), MAIN)))) == []


def test_a_job_of_one_rank_has_known_waits_only() -> None:
    of = spread(1, 1)
    assert accused(said(of, at(of, COMPUTES))) == []
    assert accused(said(of, at(of, LOCKED))) == [("deadlock", Grade.POSSIBLE, (0,))]


def test_without_stacks_the_kernel_names_a_rank_that_a_file_system_blocks() -> None:
    of = spread(3, 1)
    task = Task(4000, "a.out", "S", 1.0, 5, "do_poll", "poll")
    blocked = Task(4002, "a.out", "D", 1.0, 5, "nfs_wait_bit_killable", "read", "/data/a")
    why = Unread("no py-spy on this node")
    known = {
        0: ProcessStacks(4000, why, (), (task,), (task,), 2.0), 1: looked(4001, WAITS),
        2: ProcessStacks(4002, why, (), (blocked,), (blocked,), 2.0),
    }  # fmt: skip
    found = said(of, known)
    assert accused(found) == [("storage_hang", Grade.LIKELY, (2,))]
    assert motions(found) == {0: (False, False), 1: (False, True), 2: (False, False)}


def test_what_could_not_be_looked_at_twice_says_nothing() -> None:
    of = spread(3)
    once = ProcessStacks(4000, ((PythonThread("MainThread", WAITS, 4000),),))
    gone = looked(4001, LOCKED, gone=True)
    assert said(of, {0: once, 1: gone}) == []
    assert list(signs(of, cluster({"node0": {StacksFacts: Unread("late")}, "node1": {}}))) == []
    assert (StacksFacts,) == READS


@pytest.mark.slow
def test_a_thousand_ranks_are_judged_at_once() -> None:
    of = spread(1024, 128)
    known = at(of, WAITS, r700=looked(4700, LOCKED))
    begun = time.monotonic()
    assert accused(said(of, known)) == [("deadlock", Grade.LIKELY, (700,))]
    took = time.monotonic() - begun
    assert took < 5.0


# Real processes. The call that waits for other ranks is a read of a pipe, under the name of one of mpi4py's.
HEAD = """
import os, re, sys, threading, time
from types import SimpleNamespace
rank, comm = int(os.environ["RANK"]), SimpleNamespace(allreduce=lambda: None)
comm.allreduce = os.read
silent, _ = os.pipe()
def here():
    print("here", flush=True)
"""
TAIL = """
here()
comm.allreduce(silent, 1)
"""
BUSY = "    exit(re.match(r'(a+)+$', 'a' * 90 + 'b'))\n"


@with_py_spy
@pytest.mark.slow
@pytest.mark.parametrize(
    ("odd", "cause", "doing"),
    [
        ("    here(); time.sleep(600)\n", "slow_rank", "sleeps at job.py:10 in <module>"),
        ("    import pdb\n    here(); pdb.Pdb(stdin=os.fdopen(silent), stdout=sys.stdout).set_trace()\n",
         "rank_stopped", "waits for a person"),
        ("    a = threading.Lock(); a.acquire(); here()\n    with a:\n        pass\n", "deadlock", "waits for a lock"),
        ("    threading.Thread(target=threading.Event().wait).start(); here(); raise ValueError\n", "rank_crashed",
         "is ending"),
        ("    here()\n" + BUSY, "deadlock", "at job.py:11 in <module>"),
        ("    here()\n    while True: sys.stdout.write('x' * 9999)\n", "deadlock", "waits for the reader"),
        ("    import subprocess; here(); subprocess.run(['sleep', '600'])\n", "slow_rank", "waits for a program"),
    ],
)  # fmt: skip
def test_a_real_rank_that_others_wait_for_is_named(tmp_path: Path, odd: str, cause: str, doing: str) -> None:
    with running(tmp_path, HEAD + "if rank == 1:\n" + odd + TAIL, 3) as started:
        _, found = started.look()
    (clue,) = clues(found)
    assert (clue.cause, clue.ranks) == (cause, (1,)), clue
    assert doing in clue.text
    assert {number: motions(found).get(number) for number in (0, 2)} == {0: (False, True), 2: (False, True)}


@pytest.fixture
def on_one_cpu() -> Iterator[None]:
    """Let all that a test starts share one processor: what computes without an end takes no other."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@with_py_spy
@pytest.mark.slow
@pytest.mark.usefixtures("on_one_cpu")
def test_real_ranks_that_work_are_not_accused(tmp_path: Path) -> None:
    script = (
        HEAD
        + "def step(n):\n    return sum(i * n for i in range(9999))\nhere()\nwhile True:\n    step(1)\n    step(2)\n"
    )
    with running(tmp_path, script, 2) as started:
        _, found = started.look()
    assert clues(found) == []


@with_py_spy
@pytest.mark.slow
@pytest.mark.usefixtures("on_one_cpu")
def test_a_real_rank_that_works_beside_burners_is_not_accused(tmp_path: Path) -> None:
    """Eight programs compute beside it on its CPU: the rank gets some percent of it."""
    script = HEAD + "if rank == 1:\n    here()\n    while True: sum(i * i for i in range(9999))\n" + TAIL
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(8)]
    try:
        with running(tmp_path, script, 3) as started:
            _, found = started.look()
    finally:
        for one in burners:
            one.kill()
            one.wait()
    assert [one for one in clues(found) if not one.works] == []
