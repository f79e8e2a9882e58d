"""Who came to a meeting: whom to wait for, and which ranks cannot be of one job."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.hook.meeting.attendance import UNSEEN, Attendance, BadRanks, Double, contradictions, may_come, size_text
from ncheck.hook.meeting.messages import Member
from ncheck.hook.preflight import missing_ranks_stop
from ncheck.rank_variables import Rank

AT = "n0:29500"
DOUBT = f"perhaps another job meets at {AT}: NCHECK_TOKEN, a secret of this job, keeps its ranks out"


def member(rank: int, pid: int, node: str, size: int = 4) -> Member:
    return Member(rank, size, None, node, "", f"boot id of {node}", pid, "", "0.2.0")


def attendance(*missing: int, evidence: str = "remote-came") -> Attendance:
    came = tuple(member(rank, 10 + rank, f"n{rank // 2}") for rank in range(4) if rank not in missing)
    return Attendance(came, missing, (), (), remote_came=True, ports=(), evidence=evidence)


SRUN = Rank(0, 4, local_size=2, launcher="srun")
BY_HAND = replace(SRUN, launcher="variables")


@pytest.mark.parametrize(
    ("own", "came", "alive", "waited", "waits"),
    [
        (SRUN, attendance(), (), 25.0, False),
        (SRUN, attendance(1), (1,), 300.0, True),  # it has a process
        (SRUN, attendance(1), (), 25.0, False),  # rank 0 of its node came, and it has none
        (SRUN, attendance(1, 2), (2,), 25.0, False),
        (SRUN, attendance(2, 3), (), 25.0, True),  # nobody of that node came
        (SRUN, attendance(2, 3), (), UNSEEN, False),
        (SRUN, attendance(2, 3, evidence=""), (), 25.0, False),  # the job goes on without them
        (BY_HAND, attendance(1), (), 25.0, True),  # another line of a script may start it
        (BY_HAND, attendance(1), (), UNSEEN, False),
        (Rank(0, 4), attendance(1), (), 25.0, True),  # nothing says where it should be
    ],
)
def test_ranks_are_waited_for_while_they_may_come_and_the_job_would_be_stopped(
    own: Rank, came: Attendance, alive: tuple[int, ...], waited: float, *, waits: bool
) -> None:
    assert may_come(own, came, alive, waited) is waits


def test_two_sizes_are_named_by_node_or_by_rank_where_both_are_on_one() -> None:
    own = member(0, 5, "n0", 2)
    assert size_text(member(1, 7, "n1"), own) == (
        "n1 has WORLD_SIZE 4, n0 2 (rank 1 (pid 7 on n1), rank 0 (pid 5 on n0))"
    )
    assert size_text(member(1, 7, "n0"), own) == "rank 1 (pid 7 on n0) has WORLD_SIZE 4, rank 0 (pid 5 on n0) 2"


ZERO = Double(member(0, 5, "n0"), member(0, 6, "n0"), sure=True)
FAR = Double(member(1, 7, "n1"), member(1, 8, "n1"), sure=False)
SIZE = BadRanks("world-size", (2,), "n2 has WORLD_SIZE 8, n0 4")


def test_a_second_rank_0_of_this_user_is_another_job_and_proves_its_other_ranks() -> None:
    text = (
        f"another job (pids 6, 8) meets at {AT}: rank 0 came twice: rank 0 (pid 5 on n0) and rank 0 (pid 6 on n0); "
        "rank 1 came twice: rank 1 (pid 7 on n1) and rank 1 (pid 8 on n1)"
    )
    assert contradictions([ZERO, FAR], [SIZE], AT, incomplete=False) == [BadRanks("duplicate-rank", (0, 1), text), SIZE]


def test_the_word_of_peers_that_may_be_strangers_counts_where_the_job_is_incomplete() -> None:
    twice = BadRanks("duplicate-rank", (1,), FAR.text)
    assert contradictions([FAR], [SIZE], AT, incomplete=True) == [twice, SIZE]
    assert contradictions([FAR], [SIZE], AT, incomplete=False) == [
        BadRanks("doubted", (2,), f"{SIZE.text}; {DOUBT}"), BadRanks("doubted", (1,), f"{FAR.text}; {DOUBT}"),
    ]  # fmt: skip
    assert contradictions([], [], AT, incomplete=True) == []


@pytest.mark.parametrize(
    ("select", "ignore", "stop"),
    [
        ((), (), True), (("NC8",), (), True), (("nc1", "rank-missing"), (), True), (("ranks",), (), True),
        (("NC6",), (), False), (("NC802",), (), False), ((), ("NC605",), True), ((), ("NC801",), False),
        ((), ("NC801=n3",), True), (("NC8",), ("rank-missing",), False),
    ],
)  # fmt: skip
def test_missing_ranks_stop_a_job_where_their_check_is_chosen(
    select: tuple[str, ...], ignore: tuple[str, ...], *, stop: bool
) -> None:
    assert missing_ranks_stop(select, ignore) is stop
