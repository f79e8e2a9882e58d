"""What a watch does next, as a table: what is known, what its step has found, and what becomes of it.

No node is asked here but for one test; tests/lab/test_watch.py watches real jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from ncheck.errors import SettingsError
from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Cause, Login
from ncheck.model.fact import Unread
from ncheck.model.job import Job, Process, Target
from ncheck.observer import Silent
from ncheck.settings import Settings
from ncheck.triage.diagnosis import Diagnosis, EvidenceLine, WaitLimit
from ncheck.triage.facts.jobs import job_of
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.pulse import PulseFacts, RankPulse
from ncheck.triage.join import LiveReport, SeenRank, Work
from ncheck.triage.progress import JobProgress
from ncheck.triage.watch import (
    Alarm,
    Do,
    Examinations,
    Reason,
    Watch,
    WatchNote,
    WatchStep,
    after_examination,
    is_trouble,
    next_look,
    watch,
)

from tests.ncheck.fleet.scripted import Ways, nodes
from tests.ncheck.triage.live.jobs import process

NODES = ("gpu01", "gpu02")
NOW, HOUR, STALLED, EVERY = 1000.0, 4560.0, 120.0, 20.0
UP, REFUSED, BROKE = (
    Login(reached=True), Login(reached=False, cause=Cause.REFUSED, detail="refused"),
    Login(reached=True, cause=Cause.CLOSED, detail="the connection broke"),
)  # fmt: skip


def ranks(first: int = 100, port: int = 29500, script: str = "train.py") -> dict[str, list[Process]]:
    """Return a job of one rank on each node, and the pid of the first."""
    variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "gpu01", "MASTER_PORT": str(port)}
    return {
        node: [process(first + rank, argv=("python3", script), variables={**variables, "RANK": str(rank)})]
        for rank, node in enumerate(NODES)
    }


def seen(
    *jobs: dict[str, list[Process]],
    pulses: Mapping[str, PulseFacts] | None = None,
    unread: str = "",
    logins: Mapping[str, Login] | None = None,
) -> Cluster:
    """Return what a step of a watch found on the nodes."""
    known: dict[str, dict[type[object], object]] = {}
    for node in NODES:
        facts = ProcessesFacts(tuple(one for job in jobs for one in job.get(node, ())), {})
        known[node] = {
            LoginFacts: LoginFacts((logins or {}).get(node, UP)),
            ProcessesFacts: Unread("it did not answer in time") if node == unread else facts,
            **({PulseFacts: pulses[node]} if pulses and node in pulses else {}),
        }
    return Cluster.of(known)


def pulse(*pids: int, at: float = NOW, moved: int = 0) -> PulseFacts:
    return PulseFacts(at, tuple(RankPulse(pid, "S", 0.0, moved) for pid in pids), 0, 0, None)


def job(*jobs: dict[str, list[Process]]) -> Job:
    found = job_of(seen(*jobs), Target())
    assert found
    return found


def progress(*moved: int) -> JobProgress:
    """Return what was seen of two ranks until now; the first one read so many bytes between two looks."""
    known, total = JobProgress(STALLED), 0
    for number, amount in enumerate(moved):
        at, total = NOW - EVERY * (len(moved) - number), total + amount
        known = known.after(at, {"gpu01": pulse(100, at=at, moved=total), "gpu02": pulse(101, at=at)})
    return known


TORCHRUN = {"gpu01": [process(9, argv=("python3", "/usr/bin/torchrun", "train.py"), name="torchrun", variables={})]}
HALF, OTHER = {"gpu01": ranks()["gpu01"]}, ranks(700, 29600, "eval.py")
BOTH = {"gpu01": pulse(100), "gpu02": pulse(101)}
FIRST, SECOND = ("gpu01", 100), ("gpu02", 101)
MOVES, MOVED_MUCH = progress(*[10**8] * 30), (*[10**8] * 24, *[10**7] * 14)
STANDS = progress(*[0] * 7)  # for the window, and no longer

LOG_IN = Watch(Target(), JobProgress(STALLED), until=HOUR)
FIND = replace(LOG_IN, step=WatchStep(Do.FIND, EVERY))
AGAIN = replace(FIND, looks=9, job=job(ranks()), silent={"gpu01": 1})
LOOK = replace(AGAIN, looks=3, step=WatchStep(Do.LOOK, EVERY), silent={})
LOGGED_IN = {"step": WatchStep(Do.FIND), "until": NOW + 3600 - 60}
LOOKED = {"looks": 4, "silent": {"gpu01": 0, "gpu02": 0}}
TO_LOOK, TO_FIND = WatchStep(Do.LOOK, EVERY), WatchStep(Do.FIND, EVERY)
FOUND = {"silent": {}, "looks": 10, "step": TO_LOOK}
WHOLE = "2 ranks on nodes gpu01, gpu02"


@pytest.mark.parametrize(("before", "found", "after", "notes"), [
    # after a login
    (LOG_IN, seen(), LOGGED_IN, ()),
    (LOG_IN, seen(logins={"gpu02": REFUSED}),
     {**LOGGED_IN, "unreached": {"gpu02": REFUSED}}, ["not watched: gpu02: refused"]),
    (LOG_IN, seen(logins=dict.fromkeys(NODES, BROKE)),
     {**LOGGED_IN, "step": WatchStep(Do.END), "unreached": dict.fromkeys(NODES, BROKE)},
     ["not watched: gpu[01-02]: the connection broke"]),
    (replace(LOG_IN, looks=50, unreached={"gpu01": REFUSED}), seen(logins={"gpu02": Login(reached=False)}),
     {**LOGGED_IN, "unreached": {"gpu02": Login(reached=False)}},
     ["not watched: gpu02: it did not answer in time", "watched again: gpu01"]),
    # the job is looked for
    (FIND, seen(ranks()), {"looks": 1, "step": TO_LOOK, "job": job(ranks())}, ["the job is watched: " + WHOLE]),
    (FIND, seen(HALF), {"looks": 1, "step": TO_LOOK, "job": job(HALF), "absent": {1}},
     ["the job is watched: 1 rank on node gpu01"]),
    (FIND, seen(), {"looks": 1}, ["no job runs on these nodes yet: waiting for one"]),
    (replace(FIND, looks=1), seen(), {"looks": 2}, ()),
    (AGAIN, seen(ranks()), FOUND, ()),
    (replace(AGAIN, job=job(HALF), absent=frozenset({1})), seen(ranks()), {**FOUND, "job": job(ranks())}, ()),
    (replace(AGAIN, job=job(HALF), absent=frozenset({1})), seen(HALF), {**FOUND, "absent": frozenset()},
     ["rank 1 of 2 not found: not started, or ended before the watch"]),
    (replace(AGAIN, job=job(HALF)), seen(HALF), FOUND, ()),
    (replace(AGAIN, ended={SECOND: 5.0}, progress=MOVES, examined=Examinations(puzzled=True, next_at=2e3)),
     seen(ranks(300)),
     {**FOUND, "job": job(ranks(300)), "ended": {}, "progress": JobProgress(STALLED), "examined": Examinations()},
     ["the job has started again: " + WHOLE]),
    (AGAIN, seen(ranks(), OTHER), FOUND, ()),
    (AGAIN, seen(unread="gpu02"), {"looks": 10, "step": TO_LOOK}, ()),  # it may go on, unseen
    (AGAIN, seen(), {"looks": 10, "step": WatchStep(Do.END), "job": None}, ["the job ended"]),
    (replace(AGAIN, ended={SECOND: 5.0, FIRST: 7.0}), seen(), {"looks": 10, "step": WatchStep(Do.END), "job": None},
     ["the job ended; first to end: rank 1 (pid 101 on gpu02)"]),
    (AGAIN, seen(TORCHRUN), {"looks": 10, "job": None},
     ["all ranks have ended, and their launcher has not: waiting for a restart"]),
    (replace(AGAIN, until=NOW), seen(ranks()), {**FOUND, "step": WatchStep(Do.LOG_IN)}, ()),
    # a look at the job
    (LOOK, seen(pulses=BOTH), LOOKED, ()),
    (replace(LOOK, looks=8), seen(pulses=BOTH), {**LOOKED, "looks": 9, "step": TO_FIND}, ()),
    (replace(LOOK, until=NOW), seen(pulses=BOTH), {**LOOKED, "step": WatchStep(Do.LOG_IN)}, ()),
    (LOOK, seen(pulses={"gpu01": pulse(100)}, logins={"gpu02": BROKE}),
     {"looks": 4, "silent": {"gpu01": 0}, "unreached": {"gpu02": BROKE}, "until": NOW + STALLED},
     ["not watched: gpu02: the connection broke"]),
    (replace(LOOK, silent={"gpu01": 2, "gpu02": 1}), seen(),
     {"looks": 4, "silent": {"gpu01": 3, "gpu02": 2}, "until": NOW + STALLED,
      "unreached": {"gpu01": Login(reached=True, cause=Cause.SILENT, detail="no answer to 3 looks")}},
     ["not watched: gpu01: no answer to 3 looks"]),
    (LOOK, seen(pulses={**BOTH, "gpu02": pulse()}), {**LOOKED, "ended": {SECOND: NOW}}, ()),
    (replace(LOOK, ended={SECOND: NOW - 20}), seen(pulses={**BOTH, "gpu02": pulse()}),
     {**LOOKED, "ended": {SECOND: NOW - 20}, "noted": {SECOND}},
     ["rank 1 (pid 101 on gpu02) ended; 1 of the job go on"]),
    (LOOK, seen(pulses={"gpu01": pulse(), "gpu02": pulse()}),
     {**LOOKED, "ended": {FIRST: NOW, SECOND: NOW}, "step": WatchStep(Do.FIND)}, ()),
    (replace(LOOK, ended={SECOND: NOW - 40}, noted=frozenset({SECOND})), seen(pulses={**BOTH, "gpu02": pulse()}),
     {**LOOKED, "ended": {SECOND: NOW - 40},
      "step": WatchStep(Do.EXAMINE, 0.0, Reason.ENDED, Target(pid=100, node="gpu01"), NOW, NOW - 40)}, ()),
    (replace(LOOK, progress=STANDS), seen(pulses=BOTH),
     {**LOOKED, "examined": Examinations(still=NOW - 140),
      "step": WatchStep(Do.EXAMINE, 0.0, Reason.STILL, Target(pid=100, node="gpu01"), NOW, NOW - 140)}, ()),
    (replace(LOOK, progress=STANDS, unreached={"gpu01": BROKE}), seen(pulses={"gpu02": pulse(101)}),
     {"looks": 4, "silent": {"gpu02": 0}, "examined": Examinations(still=NOW - 140),
      "step": WatchStep(Do.EXAMINE, 0.0, Reason.STILL, Target(pid=101, node="gpu02"), NOW, NOW - 140)}, ()),
    *[(replace(LOOK, progress=STANDS, examined=examined), seen(pulses=BOTH),
       {**LOOKED, "examined": replace(examined, still=NOW - 140)}, ())
      for examined in (Examinations(next_at=NOW + 1), Examinations(alarm=Reason.STILL))],
    (replace(LOOK, progress=MOVES, examined=Examinations(alarm=Reason.STILL, next_at=9e9, puzzled=True)),
     seen(pulses={**BOTH, "gpu01": pulse(100, moved=31 * 10**8)}), {**LOOKED, "examined": Examinations()},
     ["the job makes progress again"]),
    (replace(LOOK, progress=progress(*MOVED_MUCH)),
     seen(pulses={**BOTH, "gpu01": pulse(100, moved=sum(MOVED_MUCH) + 10**7)}),
     {**LOOKED, "step": WatchStep(Do.EXAMINE, 0.0, Reason.SLOW, Target(pid=100, node="gpu01"), NOW, 700.0)}, ()),
    (replace(LOOK, progress=progress(*MOVED_MUCH), examined=Examinations(slow=True)),
     seen(pulses={**BOTH, "gpu01": pulse(100, moved=sum(MOVED_MUCH) + 10**7)}), LOOKED, ()),
])  # fmt: skip
def test_what_a_watch_makes_of_what_it_finds(
    before: Watch, found: Cluster, after: dict[str, Any], notes: list[str]
) -> None:
    seen_now = found.facts(PulseFacts) if before.step.do is Do.LOOK else None
    looked = {} if seen_now is None else {"progress": before.progress.after(NOW, seen_now)}
    got = next_look(before, found, NOW)
    events = tuple(WatchNote(text, blind=text.startswith("not")) for text in notes)
    assert got == replace(before, **{"events": events, **looked, **after})


def test_of_several_jobs_none_is_watched_unasked() -> None:
    with pytest.raises(SettingsError, match="2 jobs run on these nodes"):
        next_look(FIND, seen(ranks(), OTHER), NOW)


def test_a_node_without_python3_is_not_watched_and_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncheck.fleet.bootstrap.CANDIDATES", ("no-such-python3",))
    (note,) = watch(Settings(), nodes(*NODES), lambda: lambda _: Ways(), Silent())
    assert isinstance(note, WatchNote)
    assert (note.blind, note.text.partition(": ")[2].partition(":")[0]) == (True, "gpu[01-02]")


# Examinations


def report(work: Work, *diagnoses: Diagnosis, ranks: tuple[SeenRank, ...] = (SeenRank(0, "gpu01", 1),)) -> LiveReport:
    return LiveReport(
        diagnoses, healthy=False, summary="", job="", size=2, ranks=ranks, missing=(), unread=(), work=work
    )


def diagnosis(cause: str = "slow_rank", sure: float = 0.8, rank: int = 0, *, works: bool = False) -> Diagnosis:
    return Diagnosis(cause, sure, "", "", (), (rank,), (NODES[rank],), "", (), works)


def test_what_two_examinations_must_say_for_an_alarm() -> None:
    still = Work.STILL
    accused = report(still, diagnosis())
    examined = {
        "it stands, and one rank is accused twice": (accused, accused),
        "of two causes": (report(still, diagnosis("deadlock", 0.5)), accused),
        "nobody is accused of what no rank shows, twice": (report(still, diagnosis("unknown", 0.3)),) * 2,
        "it moves, and the same rank is slow twice": (report(Work.MOVES, diagnosis()),) * 2,
        "once": (None, accused),
        "another rank each time": (report(still, diagnosis("deadlock", rank=1)), accused),
        "it is in doubt": (report(still, diagnosis(sure=0.4)),) * 2,
        "ranks wait for one that works": (report(still, diagnosis(works=True)),) * 2,
        "it worked the first time": (report(still, diagnosis(works=True)), accused),
        "and works the second time": (accused, report(still, diagnosis(works=True))),
        "nothing shows why": (report(still),) * 2,
        "it moves": (report(Work.MOVES),) * 2,
        "nothing shows whether it moves": (report(Work.UNKNOWN),) * 2,
        "it has ended meanwhile": (accused, report(still, diagnosis(), ranks=())),
    }
    judged = [words for words, (before, now) in examined.items() if is_trouble(now, before=before)]
    assert judged == list(examined)[:4]


ACCUSED, NOBODY = report(Work.STILL, diagnosis()), report(Work.STILL)
AT_WORK = report(Work.STILL, diagnosis(sure=0.4, works=True))
SLOW_ONE = report(Work.MOVES, diagnosis())
CAUSE = ("slow_rank", (0,))
EXAMINE = replace(
    LOOK,
    progress=STANDS,
    step=WatchStep(Do.EXAMINE, 0.0, Reason.STILL, Target(pid=100, node="gpu01"), NOW - 5, NOW - 140),
)
STILL = "the job has moved next to nothing for 2 min"


def alarm(examined: LiveReport, *, slow: bool = False) -> Alarm:
    return Alarm(slow, NOW - 140, STILL, examined, (), job(ranks()))


@pytest.mark.parametrize(("before", "found", "after", "events"), [
    ({}, ACCUSED, {"last": ACCUSED, "next_at": NOW + 40}, []),  # again, two looks later
    ({}, AT_WORK, {"last": AT_WORK, "next_at": NOW + 240}, []),
    ({}, report(Work.UNKNOWN), {"last": report(Work.UNKNOWN), "next_at": NOW + 60}, []),
    ({"last": ACCUSED}, ACCUSED, {"last": None, "next_at": NOW + 240, "alarm": Reason.STILL}, [alarm(ACCUSED)]),
    ({"last": ACCUSED}, AT_WORK, {"last": AT_WORK, "next_at": NOW + 240}, []),
    ({"last": NOBODY}, NOBODY, {"last": NOBODY, "next_at": NOW + 240, "puzzled": True},
     [WatchNote(f"{STILL}; nothing that was seen shows why")]),
    ({"last": NOBODY, "puzzled": True}, NOBODY, {"next_at": NOW + 240}, []),
    ({"last": SLOW_ONE}, SLOW_ONE, {"last": None, "next_at": NOW + 240, "slow": True, "reported": {CAUSE}},
     [alarm(SLOW_ONE, slow=True)]),
    ({"last": SLOW_ONE, "reported": frozenset({CAUSE})}, SLOW_ONE, {"next_at": NOW + 240}, []),
])  # fmt: skip
def test_what_a_watch_makes_of_an_examination(
    before: dict[str, Any], found: LiveReport, after: dict[str, Any], events: list[WatchNote | Alarm]
) -> None:
    given = replace(EXAMINE, examined=Examinations(**before))
    examined = replace(given.examined, **{"last_at": NOW, **after})
    assert after_examination(given, found, job(ranks()), NOW) == replace(
        given, events=tuple(events), examined=examined, step=TO_LOOK
    )


# Limits

NEAR = (
    "the job has waited for 24 min of the 30 min that --ddp_timeout (transformers) allows: rank 0 saves; shorten this"
    " work, or raise the limit"
)
OVER = "the job goes on after a wait of 24 min; its limit is 30 min"
SAVES = Diagnosis("checkpoint_write", 0.4, "", "", (EvidenceLine("gpu01", 0, "rank 0 saves"),), (0,), (), "", ())


def waits(seconds: float | None, *, works: bool = True, near: float | None = None) -> Examinations:
    """Return the examinations of a job that has waited for 24 minutes, for rank 0 to save, with that limit."""
    saves = replace(SAVES, works=works, limit=WaitLimit("transformers", "--ddp_timeout", seconds))
    return Examinations(last=report(Work.STILL, saves), next_at=HOUR, still=NOW - 1440, near=near)


@pytest.mark.parametrize(("moved", "examined", "near", "notes"), [
    (STANDS, waits(1800.0), 1800.0, [NEAR]),
    (STANDS, waits(1800.0, near=1800.0), 1800.0, []),  # it was said
    (STANDS, waits(1801.0), None, []),  # there is time
    (STANDS, waits(None), None, []),
    (STANDS, waits(1800.0, works=False), None, []),  # it hangs, which is another matter
    (STANDS, replace(waits(1800.0), last=None), None, []),
    (STANDS, Examinations(next_at=HOUR), None, []),
    (MOVES, waits(1800.0, near=1800.0), None, [OVER]),
    (MOVES, waits(5400.0), None, []),
])  # fmt: skip
def test_a_wait_that_comes_near_to_its_limit_is_named_before_it_fails(
    moved: JobProgress, examined: Examinations, near: float | None, notes: list[str]
) -> None:
    pulses = {**BOTH, "gpu01": pulse(100, moved=31 * 10**8 if moved is MOVES else 0)}
    got = next_look(replace(LOOK, progress=moved, examined=examined), seen(pulses=pulses), NOW)
    still = None if moved is MOVES else NOW - 140 if examined.still is None else examined.still
    assert ([getattr(one, "text", "") for one in got.events], got.step) == (notes, TO_LOOK)
    assert (got.examined.still, got.examined.near) == (still, near)
