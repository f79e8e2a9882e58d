"""Clues and motions to one answer: what outweighs what, how sure it is, and when nothing may be said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Cause, Login
from ncheck.model.fact import Unread
from ncheck.model.job import Job, Target
from ncheck.triage import join
from ncheck.triage.certainty import Grade
from ncheck.triage.clue import Clue, Motion, Sign
from ncheck.triage.facts.kernel_messages import KernelMessagesFacts
from ncheck.triage.facts.processes import OtherProcess, ProcessesFacts
from ncheck.triage.facts.stacks import StacksFacts
from ncheck.triage.join import LiveReport, examine_job
from ncheck.triage.live import SourceReader

from tests.ncheck.triage.live.jobs import process

RANKS = 4


def cluster(**more: Any) -> Cluster:
    """Two nodes with two ranks each."""
    known: dict[str, Any] = {}
    for node in range(2):
        held = tuple(
            process(4000 + rank, variables={"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "n0"})
            for rank in (2 * node, 2 * node + 1)
        )
        known[f"n{node}"] = {ProcessesFacts: ProcessesFacts(held, {})}
    return Cluster.of({**known, **more})


def examined(
    signs: Sequence[Sign], monkeypatch: pytest.MonkeyPatch, of: Cluster | None = None, **words: Any
) -> LiveReport:
    def said(_job: Job, _cluster: Cluster) -> Iterator[Sign]:
        return iter(signs)

    monkeypatch.setattr(join, "readers", lambda: (SourceReader("made", (), said),))
    return examine_job(of or cluster(), Target(), **words)


def motions(*moving: int, waits: bool = False) -> list[Sign]:
    """Return what the stacks say of all ranks, of which these move."""
    return [Motion("stacks", rank, f"n{rank // 2}", rank in moving, f"rank {rank}", waits) for rank in range(RANKS)]


STILL = motions(waits=True)
MOVING = motions(0, 1, 2, 3)


def clue(cause: str, grade: Grade = Grade.LIKELY, *ranks: int, source: Any = "stacks", **more: Any) -> Clue:
    return Clue(source, cause, grade, f"{cause} of {ranks}", ranks, **more)


def answers(report: LiveReport) -> list[tuple[str, float, tuple[int, ...]]]:
    return [(one.cause, one.confidence, one.ranks) for one in report.diagnoses]


def test_a_job_that_moves_and_has_no_clue_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    report = examined(MOVING, monkeypatch)
    assert (report.healthy, report.diagnoses, report.unread) == (True, (), ())
    assert report.summary == "nothing wrong: the job makes progress"
    assert [(one.rank, one.node, one.pid) for one in report.ranks] == [
        (0, "n0", 4000), (1, "n0", 4001), (2, "n1", 4002), (3, "n1", 4003),
    ]  # fmt: skip


def test_what_matters_only_in_a_hang_accuses_nobody_in_a_job_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    hang = clue("deadlock", Grade.CERTAIN, 1)
    assert answers(examined([*MOVING, hang], monkeypatch)) == []
    assert answers(examined([*STILL, hang], monkeypatch)) == [("deadlock", 0.95, (1,))]


def test_what_slows_a_job_down_counts_only_where_it_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = clue("slow_rank", Grade.LIKELY, 1, slow=True, still=False)
    assert answers(examined([*MOVING, slow], monkeypatch)) == [("slow_rank", 0.85, (1,))]
    assert [one.cause for one in examined([*STILL, slow], monkeypatch).diagnoses] == ["unknown"]


def test_what_follows_from_other_trouble_is_none_in_a_job_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = clue("slow_rank", Grade.ECHO, slow=True, still=False)
    assert examined([*MOVING, busy], monkeypatch).healthy


def test_ranks_that_exchange_nothing_may_compute_and_are_not_said_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = [Motion("sockets", rank, f"n{rank // 2}", moves=False, text=f"rank {rank}") for rank in range(RANKS)]
    report = examined(silent, monkeypatch)
    assert (report.healthy, report.diagnoses) == (False, ())
    assert report.summary == "nothing wrong was seen, and no progress either: look again in a minute"


def test_one_rank_that_computes_while_all_others_wait_does_not_move_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    signs = [*motions(1), clue("deadlock", Grade.LIKELY, 1)]
    assert answers(examined(signs, monkeypatch)) == [("deadlock", 0.85, (1,))]


def test_ranks_that_could_not_be_watched_do_not_speak_for_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Motion("processes", 3, "n1", moves=True, text="rank 3 reads")
    report = examined([one], monkeypatch)
    assert (report.healthy, [it.name for it in report.unread]) == (False, ["job"])


def test_processes_without_a_number_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    signs: list[Sign] = [
        Motion("stacks", None, "n0", pid == 4003, f"pid {pid}", waits=pid != 4003, pid=pid) for pid in range(4000, 4004)
    ]
    assert not examined(signs, monkeypatch).healthy


def test_a_rank_that_is_gone_is_no_fault_where_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = clue("rank_missing", Grade.CERTAIN, 3)
    last: dict[str, Any] = {
        "n0": {ProcessesFacts: ProcessesFacts((process(4000, variables={"RANK": "0", "WORLD_SIZE": "4"}),), {})}
    }
    assert answers(examined([*motions(), gone], monkeypatch, Cluster.of(last))) == [("unknown", 0.3, ())]
    assert answers(examined([*STILL, gone], monkeypatch)) == [("rank_missing", 0.95, (3,))]
    moves = examined([*MOVING, gone], monkeypatch)
    assert (moves.healthy, moves.diagnoses, [one.reason for one in moves.unread]) == (False, (), [gone.text])


def test_an_echo_alone_names_no_culprit(monkeypatch: pytest.MonkeyPatch) -> None:
    echo = clue("rank_crashed", Grade.ECHO, source="logs")
    assert answers(examined([*STILL, echo], monkeypatch)) == [("unknown", 0.3, ())]
    assert answers(examined([*motions(0), echo], monkeypatch)) == []


def test_a_collective_that_was_completed_says_more_than_ranks_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Motion("ras", None, "n0", moves=True, text="AllReduce count went from 7 to 9")
    assert examined([*STILL, whole], monkeypatch).healthy


def test_a_job_that_nobody_could_watch_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    report = examined([], monkeypatch)
    assert not report.healthy
    assert [one.reason for one in report.unread] == ["nothing that could be read shows whether it makes progress"]


def test_a_job_that_stands_still_for_no_reason_that_was_seen_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    report = examined(STILL, monkeypatch)
    assert answers(report) == [("unknown", 0.3, ())]
    assert report.summary == ("not certain: the job makes no progress, and nothing seen in 4 processes shows why")


WORKS = Motion("processes", 1, "n0", moves=True, text="pid 77 beneath rank 1 computes", aside=True)


def test_a_rank_that_others_wait_for_is_not_accused_where_it_was_seen_to_work(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = clue("deadlock", Grade.LIKELY, 1, nodes=("n0",), fix="kill 77")
    agrees = clue("deadlock", Grade.POSSIBLE, 1, nodes=("n0",), source="gpus")
    (found,) = examined([*STILL, WORKS, stuck, agrees], monkeypatch).diagnoses
    assert (found.cause, found.confidence, found.ranks, found.works, found.fix) == ("slow_rank", 0.4, (1,), True, "")
    assert found.meaning == "the others wait for rank 1, which works"
    assert [one.text for one in found.evidence] == [
        "deadlock of (1,)", "pid 77 beneath rank 1 computes", "deadlock of (1,)",
    ]  # fmt: skip


def test_a_rank_that_works_before_the_rendezvous_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    late = clue("slow_rank_timeout", Grade.LIKELY, 1, nodes=("n0",), source="sockets")
    works = clue("slow_rank", Grade.POSSIBLE, 1, nodes=("n0",), works=True, meaning="the others wait for rank 1")
    assert answers(examined([*STILL, late, works], monkeypatch)) == [("slow_rank", 0.4, (1,))]
    # That a loop comes to no end is seen by the stacks alone.
    loops, busy = clue("deadlock", Grade.LIKELY, 1, nodes=("n0",)), replace(works, source="processes")
    assert answers(examined([*STILL, loops, busy], monkeypatch))[0][:2] == ("deadlock", 0.89)


@pytest.mark.parametrize("other", [
    clue("deadlock", Grade.LIKELY, 2, nodes=("n1",)),  # of another rank
    clue("deadlock", Grade.LIKELY, 1, 2, nodes=("n0", "n1")),  # of one more
    clue("deadlock", Grade.LIKELY, 1, nodes=("n1",)),  # what works is on another node
    clue("deadlock", Grade.CERTAIN, 1, nodes=("n0",)),
    clue("storage_hang", Grade.LIKELY, 1, nodes=("n0",)),
    clue("collective_mismatch", Grade.LIKELY, 1, nodes=("n0",)),
])  # fmt: skip
def test_work_beside_it_excuses_nothing_else(other: Clue, monkeypatch: pytest.MonkeyPatch) -> None:
    signs = [*STILL, WORKS, other]
    assert answers(examined(signs, monkeypatch)) == answers(examined([*STILL, other], monkeypatch))


def test_programs_that_compute_beneath_waiting_ranks_do_not_move_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = [Motion("processes", rank, f"n{rank // 2}", moves=True, text="", aside=True) for rank in range(RANKS)]
    assert examined([*STILL, *beside], monkeypatch).work is join.Work.STILL


@pytest.mark.parametrize(("signs", "wrong"), [
    (MOVING, False),
    ([*STILL, WORKS, clue("deadlock", Grade.LIKELY, 1, nodes=("n0",))], False),  # the others wait for a rank that works
    ([*STILL, clue("deadlock", Grade.LIKELY, 1)], True),
    ([*STILL, clue("deadlock", Grade.POSSIBLE, 1)], True),
    ([*MOVING, clue("rank_stopped", Grade.CERTAIN, 1, still=False)], True),
    (STILL, True),  # nothing shows why
    (STILL[:3], True),
    ([], True),
])  # fmt: skip
def test_a_job_is_well_where_it_gets_on_or_waits_for_work(
    signs: list[Sign], *, wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert examined(signs, monkeypatch).wrong == wrong


def test_ranks_that_wake_up_again_and_again_are_not_said_to_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    wakes = Motion("stacks", 1, "n0", moves=True, text="", waits=True, aside=True)
    report = examined([*STILL, wakes], monkeypatch)
    assert (report.diagnoses, report.work, report.wrong) == ((), join.Work.STILL, True)


def test_one_source_can_be_judged_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    signs = [*STILL, clue("deadlock", Grade.CERTAIN, 0), clue("disk_full", Grade.LIKELY, 0, source="logs")]
    assert answers(examined(signs, monkeypatch, sources=("logs",))) == [("disk_full", 0.85, (0,))]


def test_a_reader_that_breaks_costs_no_other_and_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_job: Job, _cluster: Cluster) -> Iterator[Sign]:
        raise RuntimeError("oops")

    def moves(_job: Job, _cluster: Cluster) -> Iterator[Sign]:
        return iter(MOVING)

    monkeypatch.setattr(join, "readers", lambda: (SourceReader("one", (), breaks), SourceReader("two", (), moves)))
    report = examine_job(cluster(), Target())
    assert (report.healthy, [(one.name, one.reason) for one in report.unread]) == (
        False, [("one", "a bug in ncheck: RuntimeError: oops")],
    )  # fmt: skip


def test_a_node_that_was_not_reached_keeps_the_job_from_being_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    login = LoginFacts(Login(reached=False, detail="connection refused"))
    lost = {LoginFacts: login, ProcessesFacts: Unread("not reached")}
    report = examined(MOVING, monkeypatch, cluster(n9=lost))
    assert (report.healthy, [(one.name, one.reason) for one in report.unread]) == (
        False,
        [("n9", "connection refused")],
    )


def test_what_nodes_did_not_answer_in_time_is_named_and_keeps_the_job_from_being_healthy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = Unread("the agent's stacks: the run's deadline passed", unanswered=True)
    hung = Unread("dmesg --kernel did not end within 10 s and was killed", hung="dmesg --kernel")
    whole = cluster()
    facts: dict[str, Any] = {name: dict(whole.known[name]) for name in whole.names}
    cut = Login(reached=True, cause=Cause.DEADLINE, detail="the run's deadline passed")
    facts["n1"] |= {LoginFacts: LoginFacts(cut), StacksFacts: late}
    facts["n0"] |= {KernelMessagesFacts: hung, StacksFacts: late}  # nobody asked it: its session did not end early
    monkeypatch.setattr(join, "readers", lambda: (SourceReader("stacks", (StacksFacts, KernelMessagesFacts), said),))

    def said(_job: Job, _cluster: Cluster) -> Iterator[Sign]:
        return iter(MOVING)

    report = examine_job(Cluster.of(facts), Target())
    assert [(one.name, one.reason) for one in report.unread] == [("n0", hung.reason), ("n1", late.reason)]
    assert (report.healthy, report.wrong, report.work, report.diagnoses) == (False, True, join.Work.MOVES, ())
    assert report.summary == "nothing wrong was seen: something moved, and not all of the job could be looked at"


def test_processes_that_could_not_be_looked_into_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = Cluster.of({"n0": {ProcessesFacts: ProcessesFacts((), {}, hidden=7)}})
    assert examined(MOVING, monkeypatch, hidden).notes == (
        "7 processes of other users could not be looked into on n0: a job of another user shows only to root (-l root)",
    )
    many = Cluster.of({"n0": {ProcessesFacts: ProcessesFacts((), {}, left_out=7)}})
    assert [one.reason for one in examined(MOVING, monkeypatch, many).unread] == [
        "7 processes are too many for one answer, and were left out"
    ]


def test_no_job_is_no_health(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Cluster.of({"n0": {ProcessesFacts: ProcessesFacts((), {})}})
    report = examined(MOVING, monkeypatch, empty)
    assert (report.healthy, report.unread, report.ranks) == (False, (), ())
    assert report.summary == "no job was found: no process has a launcher's variables, and none holds a GPU"
    others = ProcessesFacts((), {}, 1, others=(OtherProcess(7, 1001, "python train.py"),))
    assert [
        one.reason for one in examined(MOVING, monkeypatch, Cluster.of({"n0": {ProcessesFacts: others}})).unread
    ] == [
        "pid 7 of user 1001 (python train.py) may be of a job, and only that user and root may look into it (-l root)"
    ]
    own_only = Cluster.of({"n0": {ProcessesFacts: ProcessesFacts((), {}, own_only=True)}})
    assert [one.reason for one in examined(MOVING, monkeypatch, own_only).unread] == [
        "/proc shows this user its own processes only (hidepid): a job of another user shows to root (-l root)"
    ]
    named = examine_job(empty, Target(pid=7, node="n0"))
    assert [one.reason for one in named.unread] == ["no job was found: no process of these nodes fits --job n0:7"]
