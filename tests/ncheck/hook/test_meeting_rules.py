"""The rules of a meeting, as tables: what happens on rank 0, and what it then knows and does. No process, no socket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ncheck.hook.meeting import rules
from ncheck.hook.meeting.attendance import Attendance, BadRanks
from ncheck.hook.meeting.messages import ENDED, LOST, MISUSE, Look, Member, NotMet, Told, Wait, Welcome
from ncheck.hook.meeting.rules import (
    Action,
    AskForChannel,
    Examine,
    HangUp,
    Meeting,
    MeetingStage,
    OpenPort,
    OtherJob,
    Say,
    Show,
    Step,
)  # fmt: skip
from ncheck.rank_variables import Rank

AT = "n0:29500"
DOUBT = f"perhaps another job meets at {AT}: NCHECK_TOKEN, a secret of this job, keeps its ranks out"
VERDICT = {"stop": False}
TOLD = Told(VERDICT)
PORT, MASTER_PORT = 20001, 29500
HERE = "10.0.0.99"  # the address of rank 0's host

Event = Callable[[Meeting], Step]


def member(rank: int, size: int = 3, **fields: Any) -> Member:
    words = {
        "host_name": f"host{rank}", "machine": f"machine {rank}", "pid": 1000 + rank, "address": f"10.0.0.{rank}",
        **fields,
    }  # fmt: skip
    return Member(rank, size, None, node_name="", version="0.1.0", **words)


def begun(size: int = 3, timeout: float = 12.0, *, rank: Rank | None = None, **fields: Any) -> Meeting:
    """Return a meeting at second 0: rank 0 itself has come, as peer 0, and its port is open."""
    rank = rank or Rank(0, size, master="n0", master_port=MASTER_PORT)
    size = rank.size
    words = {"begun": 0.0, "timeout": timeout, "deadline": timeout, "master_port": MASTER_PORT, **fields}
    meeting = Meeting(rank=rank, own=member(0, size, address=""), **words)
    meeting, _ = rules.came(meeting, 0, meeting.own, timeout, 0.0, sure=True)
    return rules.opened(meeting, PORT)[0]


def play(meeting: Meeting, *events: Event) -> tuple[Meeting, list[Action]]:
    """Let this happen, and return what was done."""
    done = list[Action]()
    for event in events:
        meeting, actions = event(meeting)
        done += actions
    return meeting, done


# What can happen. Peers are numbered in the order in which they come: rank 0 itself is 0.


def came(
    rank: int, at: float = 1.0, seconds: float = 30.0, *, sure: bool = True, to: str = HERE, **fields: Any
) -> Event:
    def event(meeting: Meeting) -> Step:
        who = member(rank, **{"size": meeting.rank.size, **fields})
        return rules.came(meeting, meeting.entries, who, seconds, at, sure=sure, reached_at=to)

    return event


def left(peer: int, reason: str = ENDED) -> Event:
    return lambda meeting: rules.left(meeting, peer, reason)


def gave_up(peer: int, kind: str, at: float = 2.0) -> Event:
    return lambda meeting: rules.continues(meeting, peer, kind, at)


def tick(at: float, *, unsent: bool = False) -> Event:
    return lambda meeting: rules.tick(meeting, at, unsent=unsent)


def connected(machine: str) -> Event:
    return lambda meeting: rules.channel_opened(meeting, machine)


def examined(result: rules.Result = VERDICT, at: float = 10.0) -> Event:
    """Let the examiner end, and the next tick conclude."""
    return lambda meeting: rules.tick(rules.examined(meeting, result)[0], at)


def alive(peer: int, *ranks: int) -> Event:
    return lambda meeting: rules.answered(meeting, peer, ranks)


def met(other: OtherJob) -> Event:
    return lambda meeting: rules.met_other(meeting, 20000, other)


def taken(size: int = 3, *came_: Event, at: float = 9.0, **fields: Any) -> Meeting:
    """Return a meeting whose attendance is taken, with no channel, and whose nodes are examined."""
    return play(begun(size, **fields), *came_, tick(at), tick(at + 5))[0]


def attendance(*came_: Event, size: int = 3, at: float = 9.0, **fields: Any) -> Attendance:
    """Return what the examiner is told."""
    meeting = taken(size, *came_, at=at, **fields)
    assert meeting.stage is MeetingStage.EXAMINATION
    return meeting.attendance()


ALL = (came(1), came(2))


def test_rank_0_opens_its_port_once_it_has_come_itself_and_welcomes_those_who_come() -> None:
    own = member(0, 2, address="")
    meeting = Meeting(rank=Rank(0, 2), own=own, begun=0.0, timeout=12.0, deadline=12.0)
    meeting, done = play(meeting, lambda new: rules.came(new, 0, own, 12.0, 0.0, sure=True))
    assert done == [Say((0,), Welcome(own)), OpenPort()]
    assert play(meeting, came(1))[1] == [Say((1,), Welcome(own))]
    alone = replace(meeting, rank=Rank(0, 1), peers={}, ranks={}, entries=0)
    assert play(alone, lambda new: rules.came(new, 0, own, 12.0, 0.0, sure=True))[1] == [Say((0,), Welcome(own))]


def test_all_that_is_known_of_a_meeting_in_which_one_rank_came() -> None:
    one = member(1)
    meeting, _ = play(begun(), came(1, at=1.5, seconds=8.0))
    zero = rules.Peer(0, member(0, address=""), sure=True)
    assert meeting == Meeting(
        rank=Rank(0, 3, master="n0", master_port=MASTER_PORT), own=zero.member, begun=0.0, timeout=12.0, deadline=9.5,
        master_port=MASTER_PORT, ports=(PORT,), peers={0: zero, 1: rules.Peer(1, one, sure=True)}, ranks={0: 0, 1: 1},
        connected=2, entries=2, entered=1.5, reached_at=HERE,
    )  # fmt: skip
    assert meeting.wake == 2.0  # then the master port is opened
    assert attendance(came(1)) == Attendance(
        members=(replace(zero.member, address=HERE), one), missing=(2,), ended=(), problems=(),
        remote_came=True, ports=(PORT,), evidence="remote-came",
    )  # fmt: skip


def test_the_ranks_of_this_host_get_the_address_that_other_machines_have_reached() -> None:
    local = came(1, machine="machine 0", to="127.0.0.1")
    assert [one.address for one in attendance(local, came(2)).members] == [HERE, HERE, "10.0.0.2"]
    assert [one.address for one in attendance(came(2), local).members] == [HERE, HERE, "10.0.0.2"]


def test_one_rank_of_each_machine_is_asked_for_a_channel_before_the_nodes_are_examined() -> None:
    far: dict[str, Any] = {"machine": "far"}
    meeting, done = play(begun(4), came(1, machine="machine 0"), came(3, **far), came(2, **far), tick(1.0))
    assert done[3:] == [AskForChannel(3, "far"), AskForChannel(0, "machine 0")]
    meeting, done = play(meeting, connected("far"), tick(1.1))
    assert done == []
    assert play(meeting, connected("machine 0"), tick(1.2))[1] == [Examine(11.0)]


def test_the_next_rank_of_a_node_stands_in_for_a_leader_that_ends_and_nobody_for_the_last() -> None:
    far: dict[str, Any] = {"machine": "far"}
    meeting, _ = play(begun(), came(1, **far), came(2, **far), tick(1.0), connected("machine 0"))
    meeting, done = play(meeting, left(1), tick(1.1))
    assert done == [AskForChannel(2, "far")]
    assert meeting.attendance().ended == (1,)
    assert play(meeting, left(2), tick(1.2))[1] == [Examine(11.0)]


def test_a_leader_that_never_opens_its_channel_leaves_its_node_without_one() -> None:
    meeting, _ = play(begun(), *ALL, tick(1.0), connected("machine 0"))
    assert play(meeting, tick(4.3))[1] == []
    assert play(meeting, tick(4.4))[1] == [Examine(11.0)]  # a third of the time


def test_the_verdict_is_shown_and_then_sent_to_all_and_the_end_is_when_all_have_hung_up() -> None:
    meeting, done = play(taken(3, *ALL), examined())
    assert done == [Show(VERDICT), Say((0, 1, 2), TOLD)]
    assert not play(meeting, left(0), left(1), tick(10.5))[0].done
    assert play(meeting, left(0), left(1), left(2), tick(10.5))[0].done
    assert play(meeting, tick(11.0))[0].done  # they do not
    assert not play(meeting, tick(11.0, unsent=True))[0].done  # it is large, and they read slowly
    assert play(meeting, tick(11.0, unsent=True), tick(12.0, unsent=True))[0].done


def test_a_process_that_has_the_verdict_and_meets_again_is_turned_away_from_the_meeting_that_ends() -> None:
    """It has executed another program: what it looks for is the next meeting, which rank 0 has not opened yet."""
    meeting, _ = play(taken(3, *ALL), examined(), left(1))
    assert play(meeting, came(1, at=10.5))[1] == [HangUp(3)]
    other = play(meeting, came(0, at=10.5, pid=7))[1]
    assert other == [Say((3,), Welcome(meeting.own)), HangUp(3)]  # rank 0 of another job, which meets alone


def test_many_more_ranks_than_there_are_are_turned_away() -> None:
    meeting, done = play(begun(2), *(came(0, pid=pid) for pid in range(80)))
    assert done.count(Say((67,), Welcome(meeting.own))) == 1
    assert done[-12:] == [HangUp(number) for number in range(69, 81)]
    assert len(meeting.attendance().problems[0].text) < 80 * 80


def twice(rank: int, pid: int, where: str, first: str = "") -> str:
    first = first or f"rank {rank} (pid {1000 + rank} on host{rank})"
    return f"rank {rank} came twice: {first} and rank {rank} (pid {pid} on {where})"


SECOND = came(2, pid=7, host_name="other", machine="m")
SIZE = "host1 has WORLD_SIZE 7, host0 3 (rank 1 (pid 1001 on host1), rank 0 (pid 1000 on host0))"
BEYOND = "host5 has WORLD_SIZE 8, host0 3 (rank 5 (pid 1005 on host5), rank 0 (pid 1000 on host0))"
MISUSED, GONE = (
    "rank 1 (pid 1001 on host1) sent what ncheck does not send",
    "rank 1 (pid 1001 on host1) lost its connection to rank 0",
)


@pytest.mark.parametrize(
    ("happened", "missing", "ended", "problems"),
    [
        (ALL, (), (), ()),
        ((came(2),), (1,), (), ()),
        ((*ALL, left(1)), (), (1,), ()),
        ((*ALL, gave_up(1, "crashed"), left(1)), (), (), ()),  # ncheck failed there, and the rank lives
        ((*ALL, left(1, MISUSE)), (), (), (BadRanks("misuse", (1,), MISUSED),)),
        ((*ALL, left(1, LOST)), (), (), (BadRanks("lost", (1,), GONE),)),
        ((*ALL, SECOND), (), (), (BadRanks("duplicate-rank", (2,), twice(2, 7, "other")),)),
        ((came(2), SECOND), (1,), (), (BadRanks("duplicate-rank", (2,), twice(2, 7, "other")),)),
        ((came(1), came(2), left(2), SECOND), (), (), ()),  # the first one ended: it was started again
        ((came(1, size=7), came(2)), (), (), (BadRanks("world-size", (1,), SIZE),)),
        ((came(1), came(5, size=8)), (2,), (), (BadRanks("world-size", (5,), BEYOND),)),
    ],
    ids=["all", "missing", "ended", "continues", "misuse", "lost", "twice", "twice for another", "restarted", "size",
         "beyond"],
)  # fmt: skip
def test_what_is_wrong_with_ranks_is_named(
    happened: tuple[Event, ...], missing: tuple[int, ...], ended: tuple[int, ...], problems: tuple[BadRanks, ...]
) -> None:
    found = attendance(*happened)
    assert (found.missing, found.ended, found.problems) == (missing, ended, problems)


# Jobs whose id can be guessed. Ranks of another machine may be anybody; on this one, the kernel tells whose they are.

STRANGER = came(1, seconds=0.0, sure=False, pid=66)
HONEST = came(1, sure=False)


@pytest.mark.parametrize(
    ("happened", "pid", "problems"),
    [
        ((STRANGER, left(1), HONEST), 1001, ()),  # it comes as a rank and ends
        ((STRANGER, HONEST, left(1)), 1001, ()),  # beside the rank
        ((came(5, sure=False), came(1, sure=False, size=7, pid=66), HONEST), 1001, (
            BadRanks("doubted", (1,), f"{SIZE.replace('pid 1001', 'pid 66').replace('host0 3', 'host0 2')}; {DOUBT}"),
            BadRanks("doubted", (1,), f"{twice(1, 1001, 'host1', 'rank 1 (pid 66 on host1)')}; {DOUBT}"),
        )),
        ((came(1, sure=False, size=7), left(1)), None, ()),  # alone, and what it said counts no more
    ],
)  # fmt: skip
def test_a_peer_that_may_be_a_stranger_stops_nothing(
    happened: tuple[Event, ...], pid: int | None, problems: tuple[BadRanks, ...]
) -> None:
    found = attendance(*happened, size=2)
    assert (found.ended, found.problems) == ((), problems)
    assert next((one.pid for one in found.members if one.rank == 1), None) == pid
    assert found.missing == (() if pid else (1,))
    assert found.remote_came is bool(pid)


def test_what_strangers_may_have_said_counts_where_the_rank_itself_never_comes_and_leaves_time_for_the_checks() -> None:
    meeting, _ = play(begun(2, timeout=9.0), came(1, sure=False, size=7))
    assert meeting.attendance_ends == 3.0
    text = SIZE.replace("host0 3", "host0 2")
    assert meeting.attendance().problems == (BadRanks("world-size", (1,), text),)


def test_a_stranger_without_time_leaves_the_others_theirs_and_a_missing_rank_is_no_error() -> None:
    meeting, done = play(begun(3, timeout=18.0), STRANGER, gave_up(1, "overran"))
    assert done == [Say((1,), Welcome(meeting.own))]
    assert (meeting.deadline, meeting.attendance_ends, meeting.attendance().evidence) == (6.0, 2.0, "")


def test_the_machine_of_a_rank_that_two_claim_is_not_used() -> None:
    claimed = came(1, sure=False, pid=66)
    assert play(begun(2), claimed, HONEST, tick(9.0))[1][2:] == [OpenPort(MASTER_PORT), AskForChannel(0, "machine 0")]


def test_an_attendance_taken_with_a_stranger_that_leaves_is_taken_again() -> None:
    meeting, _ = play(begun(2), HONEST, tick(1.0))
    assert meeting.stage is MeetingStage.CHANNELS
    meeting, done = play(meeting, left(1), tick(1.1))
    assert (meeting.stage, meeting.missing, done) == (MeetingStage.ATTENDANCE, (1,), [])


# The end of the attendance


@pytest.mark.parametrize(
    ("happened", "ends"),
    [
        ((), 9.0),  # a quarter of the time is for the checks
        ((came(1, at=2.0, seconds=4.0),), 3.0),  # that rank has less
        ((came(1, seconds=0.5),), 2.0),  # not before the others had time to try
        ((came(1), came(1, at=3.0, pid=7)), 5.0),  # as many processes as ranks: one has the place of another
        ((came(1), came(2, at=3.0, sure=False, size=7)), 5.0),  # perhaps a stranger has the place of one
    ],
)
def test_when_the_attendance_ends(happened: tuple[Event, ...], ends: float) -> None:
    assert play(begun(), *happened)[0].attendance_ends == ends


ONE_MACHINE = Rank(0, 3, master="n0", master_port=MASTER_PORT, nodes=1)


@pytest.mark.parametrize(
    ("meeting", "happened", "evidence", "ports"),
    [
        (begun(), (), "master-port-open", (PORT, MASTER_PORT)),
        (begun(master_port=None), (), "", (PORT,)),  # the launcher's own store has it
        (begun(rank=ONE_MACHINE), (), "one-machine", (PORT,)),
        (begun(master_port=None), (came(1),), "remote-came", (PORT,)),
        (begun(master_port=None), (came(1, machine="machine 0"),), "", (PORT,)),
        (begun(inherited=True), (came(1),), "", (PORT, MASTER_PORT)),
        (begun(), (came(1), lambda meeting: rules.turned_away(meeting, "10.0.0.2")), "", (PORT, MASTER_PORT)),
        (
            begun(),
            (lambda meeting: rules.met_other(meeting, PORT, OtherJob(is_stranger=True)),),
            "",
            (PORT, MASTER_PORT),
        ),
    ],
    ids=[
        "master port",
        "no master port",
        "one machine",
        "remote",
        "same machine",
        "inherited",
        "stranger",
        "other user",
    ],
)
def test_the_evidence_that_a_missing_rank_could_have_come(
    meeting: Meeting, happened: tuple[Event, ...], evidence: str, ports: tuple[int, ...]
) -> None:
    meeting, done = play(meeting, *happened, tick(2.0))
    if OpenPort(MASTER_PORT) in done:
        meeting, _ = rules.opened(meeting, MASTER_PORT)
    found = meeting.attendance()
    assert (found.evidence, found.missing_is_error, found.ports) == (evidence, bool(evidence), ports)


def test_strangers_are_remembered_once_each_and_not_without_end() -> None:
    meeting, _ = play(begun(), *(lambda new, at=at: rules.turned_away(new, f"10.0.1.{at % 40}") for at in range(99)))
    assert meeting.attendance().strangers == tuple(f"10.0.1.{at}" for at in range(16))


def test_ranks_that_have_a_process_are_waited_for_and_those_that_have_none_are_not() -> None:
    meeting, done = play(begun(patient_until=600.0), came(1), tick(9.0))
    assert done[1:] == [OpenPort(MASTER_PORT), Say((0, 1), Look((2,)))]
    assert meeting.wake == 10.0
    note = "still waiting for rank 2, since 9 s: NCHECK_TIMEOUT=SECONDS limits this"
    waiting, done = play(meeting, alive(0), alive(1, 2), tick(9.1))
    assert done == [Say((0, 1), Wait()), Show({"note": note})]
    assert waiting.deadline == 42.0
    by_hand = Rank(0, 3, local_size=1, launcher="srun")
    meeting = replace(meeting, rank=by_hand)
    nobody = play(meeting, alive(0), tick(9.1))
    assert nobody[1] == []  # peer 1 may still answer
    meeting = replace(meeting, rank=replace(by_hand, hosts=("host0", "host1"), layout=(0, 1, 1)))
    found, done = play(meeting, alive(0), alive(1), tick(9.1))
    assert (found.stage, len(done)) == (MeetingStage.CHANNELS, 2)


def test_where_nobody_is_waited_for_the_attendance_is_taken_at_once() -> None:
    assert play(begun(), came(1), tick(9.0))[0].stage is MeetingStage.CHANNELS


# While the nodes are examined


LATE = f"another job (pids 66, 67) meets at {AT}: {twice(0, 66, 'host0')}; {twice(1, 67, 'host1')}"
CRASHED = NotMet("crashed", "the checks ended without a report")


@pytest.mark.parametrize(
    ("before", "meanwhile", "result", "outcome"),
    [
        (ALL, (left(1),), VERDICT, Told(VERDICT, (member(1),))),
        ((came(1),), (), VERDICT, TOLD),
        ((came(1),), (came(2, at=12.0),), VERDICT,
         NotMet("late", "rank 2 came too late to be checked: set NCHECK_TIMEOUT to more seconds")),
        (ALL, (came(0, at=12.0, pid=66), came(1, at=12.0, pid=67)), VERDICT, Told({**VERDICT, "late": LATE})),
        (ALL, (came(1, at=12.0),), VERDICT, TOLD),  # the same process once more
        (ALL, (came(1, at=12.0, size=7, pid=1001),), VERDICT, Told({**VERDICT, "late": SIZE})),
        (ALL, (came(1, at=12.0, sure=False, pid=67),), VERDICT,
         NotMet("doubted", f"{twice(1, 67, 'host1')}; {DOUBT}")),
        (ALL, (), CRASHED, CRASHED),
        ((came(1),), (), CRASHED,
         NotMet("ranks", f"rank 2 did not come; {CRASHED.text}", is_error=True)),
        ((came(1),), (came(2, at=12.0),), CRASHED, CRASHED),
        ((*ALL, left(1)), (), CRASHED,
         NotMet("ranks", f"rank 1 (pid 1001 on host1) ended; {CRASHED.text}", is_error=True)),
        ((*ALL, SECOND), (), CRASHED,
         NotMet("ranks", f"{twice(2, 7, 'other')}; {CRASHED.text}", is_error=True)),
    ],
    ids=["ends", "missing", "late", "another job", "same", "size", "stranger", "crashed", "crashed and missing",
         "crashed and late", "crashed and ended", "crashed and twice"],
)  # fmt: skip
def test_what_happens_during_the_examination_is_in_the_outcome(
    before: tuple[Event, ...], meanwhile: tuple[Event, ...], result: rules.Result, outcome: Told | NotMet
) -> None:
    meeting, _ = play(taken(3, *before), *meanwhile, examined(result))
    assert meeting.news == outcome


def test_the_host_of_a_missing_rank_is_named_where_the_launcher_says_it() -> None:
    rank = Rank(0, 4, local_size=4, hosts=("gpu01",), layout=(0, 0, 0, 0))
    meeting, _ = play(begun(rank=rank), came(1), tick(9.0), tick(14.0), examined(CRASHED))
    words = f"rank 2 did not come (it should be on gpu01), rank 3 did not come (it should be on gpu01); {CRASHED.text}"
    assert meeting.news == NotMet("ranks", words, is_error=True)


def test_a_rank_whose_time_is_over_takes_the_others_along_and_those_who_come_late_get_the_outcome_too() -> None:
    overran = NotMet("overran", "the time of rank 1 (pid 1001 on host1) was over before there was a verdict")
    meeting, done = play(begun(), came(1), gave_up(1, "overran"))
    assert done[1:] == [Say((0, 1), overran)]
    meeting, done = play(meeting, left(0), left(1), tick(3.0), came(2, at=3.5), tick(3.6))
    assert done == [Say((2,), Welcome(meeting.own)), Say((2,), overran)]
    assert play(meeting, left(2), tick(3.7))[0].done


def test_too_few_files_are_told_to_all_and_the_port_is_open_for_that() -> None:
    own = member(0, 512, address="")
    meeting = Meeting(rank=Rank(0, 512), own=own, begun=0.0, timeout=12.0, deadline=12.0, room=500)
    _, done = rules.came(meeting, 0, own, 12.0, 0.0, sure=True)
    files = NotMet("files", "rank 0 can open 500 more files, too few for 512 ranks: raise ulimit -n")
    assert list(done) == [Say((0,), Welcome(own)), Say((0,), files), OpenPort()]


# Another job with the same id, whose port was open first.


FIRST = OtherJob(member(0, pid=66), leads=True)


def test_all_ranks_of_two_jobs_get_the_verdict_of_the_one_that_was_first() -> None:
    meeting, done = play(begun(3), met(FIRST), came(1), tick(5.0), tick(10.7))
    assert (meeting.stage, done[1:]) == (
        MeetingStage.ATTENDANCE,
        [OpenPort(MASTER_PORT)],
    )  # it waits for the other's verdict
    news = Told({"problems": "two jobs"}, (member(1),))
    meeting, done = play(meeting, lambda new: rules.followed(new, news, 10.7))
    assert done == [Show(news.verdict), Say((0, 1), Told(news.verdict))]
    assert play(meeting, left(0), left(1), tick(10.7))[0].done  # nobody waits for rank 2


def test_another_job_whose_verdict_does_not_come_is_a_problem_of_this_one() -> None:
    meeting, done = play(begun(2), met(FIRST), came(1), met(replace(FIRST, leads=False)), tick(1.0))
    assert (meeting.stage, len(done)) == (MeetingStage.CHANNELS, 3)
    words = f"another job (pid 66) meets at {AT}: its rank 0 waits on this host too"
    assert meeting.attendance().problems == (BadRanks("duplicate-rank", (0,), words),)


def test_another_program_on_the_master_port_is_a_problem_of_rank_0() -> None:
    words = f"MASTER_PORT {MASTER_PORT} is taken on this host by process 7 (python)"
    assert taken(3, *ALL).attendance("process 7 (python)").problems == (BadRanks("port-taken", (0,), words),)
