"""What a watch makes of what it sees; the nodes are played. tests/lab/test_watch.py watches real jobs."""

from __future__ import annotations

from typing import Any

import pytest
from ncheck.errors import SettingsError
from ncheck.model.cluster import Cluster
from ncheck.model.evidence import Evidence, Login
from ncheck.model.fact import Unread
from ncheck.model.job import Job, Process, Target
from ncheck.model.node import Node
from ncheck.settings import Settings
from ncheck.triage.diagnosis import Diagnosis
from ncheck.triage.facts.processes import ProcessesFacts
from ncheck.triage.facts.pulse import PulseFacts, RankPulse
from ncheck.triage.join import LiveReport, SeenRank, Work
from ncheck.triage.watch import _Watch, is_trouble

from tests.ncheck.triage.live.jobs import process

NODES = ("gpu01", "gpu02")


def ranks(first: int = 100, port: int = 29500, script: str = "train.py") -> dict[str, list[Process]]:
    """Return a job of one rank on each node, and the pid of the first."""
    variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "gpu01", "MASTER_PORT": str(port)}
    return {
        node: [process(first + rank, argv=("python3", script), variables={**variables, "RANK": str(rank)})]
        for rank, node in enumerate(NODES)
    }


def seen(*jobs: dict[str, list[Process]], unread: tuple[str, ...] = ()) -> Cluster:
    known: dict[str, dict[type[object], object]] = {}
    for node in NODES:
        facts = ProcessesFacts(tuple(one for job in jobs for one in job.get(node, ())), {})
        known[node] = {ProcessesFacts: Unread("it did not answer in time") if node in unread else facts}
    return Cluster.of(known)


class Played:
    """Nodes that answer what the test says."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.pulse: dict[str, PulseFacts] = {}
        self.unreached: dict[str, str] = {}

    def found(self) -> Cluster:
        return self.cluster

    def watch(self, job: Job) -> None:
        self.pulse = {one.node: PulseFacts(0.0, (RankPulse(one.pid, "S", 0.0, 0),), 0, 0, None) for one in job.ranks}

    def pulses(self) -> dict[str, PulseFacts]:
        return self.pulse

    def examined(self, _: Target) -> tuple[Evidence, ...]:
        return tuple(Evidence(node, Login(reached=True)) for node in NODES)


def begun(cluster: Cluster) -> tuple[_Watch, Any, list[str]]:
    watch, session = _Watch(Settings(), tuple(map(Node, NODES)), 120.0), Played(cluster)
    return watch, session, words(watch._find(session))  # type: ignore[arg-type]


def words(events: Any) -> list[str]:
    return [event.text for event in events]


def test_a_job_is_found_starts_again_and_ends() -> None:
    watch, session, found = begun(seen(ranks()))
    assert found == ["the job is watched: 2 ranks on nodes gpu01, gpu02"]
    assert words(watch._find(session)) == []
    session.cluster = seen(ranks(300))
    assert words(watch._find(session)) == ["the job has started again: 2 ranks on nodes gpu01, gpu02"]
    session.cluster = seen()
    assert words(watch._find(session)) == ["the job ended"]
    assert watch.over


def test_a_rank_that_starts_late_or_has_ended_is_missing_only_where_it_is_not_there_later_either() -> None:
    whole = ranks()
    half = {"gpu01": whole["gpu01"]}
    watch, session, found = begun(seen(half))
    assert found == ["the job is watched: 1 rank on node gpu01"]
    session.cluster = seen(whole)
    assert words(watch._find(session)) == []
    watch, session, _ = begun(seen(half))
    assert [words(watch._find(session)) for _ in range(2)] == [
        ["rank 1 of 2 not found: not started, or ended before the watch"], [],
    ]  # fmt: skip


def test_a_watch_waits_for_the_job_and_for_a_restart_by_its_launcher() -> None:
    torchrun = {"gpu01": [process(9, argv=("python3", "/usr/bin/torchrun", "train.py"), name="torchrun", variables={})]}
    watch, session, found = begun(seen())
    assert found == ["no job runs on these nodes yet: waiting for one"]
    session.cluster = seen(ranks())
    assert words(watch._find(session)) == ["the job is watched: 2 ranks on nodes gpu01, gpu02"]
    session.cluster = seen(torchrun)
    assert words(watch._find(session)) == ["all ranks have ended, and their launcher has not: waiting for a restart"]
    assert not watch.over


def test_processes_that_could_not_be_listed_are_no_end_of_the_job() -> None:
    watch, session, _ = begun(seen(ranks()))
    session.cluster = seen(unread=("gpu02",))
    assert words(watch._find(session)) == []
    assert not watch.over


def test_of_several_jobs_the_one_that_was_watched_goes_on() -> None:
    other = ranks(700, 29600, "eval.py")
    watch, session, _ = begun(seen(ranks()))
    session.cluster = seen(ranks(), other)
    assert words(watch._find(session)) == []
    assert watch.job
    assert [one.pid for one in watch.job.ranks] == [100, 101]
    with pytest.raises(SettingsError, match="2 jobs run on these nodes"):
        begun(seen(ranks(), other))


def test_ranks_that_end_one_after_the_other_are_not_named_one_by_one() -> None:
    watch, session, _ = begun(seen(ranks()))
    session.pulse["gpu02"] = PulseFacts(1.0, (), 0, 0, None)
    assert words(watch._look(session)) == []
    assert words(watch._look(session)) == ["rank 1 (pid 101 on gpu02) ended; 1 of the job go on"]
    session.pulse["gpu01"] = PulseFacts(2.0, (), 0, 0, None)
    session.cluster = seen()
    assert words(watch._look(session)) == ["the job ended; first to end: rank 1 (pid 101 on gpu02)"]


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


class Examined(Played):
    """Nodes on which nothing moves; each examination of the job finds the next of these reports."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, *reports: LiveReport) -> None:
        super().__init__(cluster)
        self.reports = list(reports)
        monkeypatch.setattr("ncheck.triage.watch.examine_job", lambda *_: self.reports.pop(0))
        monkeypatch.setattr("ncheck.triage.watch.time.monotonic", self.clock)
        self.now = 1000.0

    def clock(self) -> float:
        return self.now

    def look_for(self, watch: _Watch, seconds: float) -> list[tuple[float, str]]:
        """Look again and again for so long, as a watch does; return what it says, and when."""
        found, began = [], self.now
        while self.now < began + seconds and self.reports:
            self.now += watch.every
            found += [(self.now - began, type(event).__name__) for event in watch._look(self)]  # type: ignore[arg-type]
        return found


ACCUSED, NOBODY = report(Work.STILL, diagnosis()), report(Work.STILL)
AT_WORK = report(Work.STILL, diagnosis(sure=0.4, works=True))


@pytest.mark.parametrize(("reports", "said"), [
    ((ACCUSED, ACCUSED), [(180.0, "Alarm")]),  # two looks of 20 s after the first, which was after 120 s of stillness
    ((ACCUSED, AT_WORK, ACCUSED), []),
    ((AT_WORK, AT_WORK), []),
    ((NOBODY, NOBODY), [(380.0, "Note")]),
])  # fmt: skip
def test_a_watch_alarms_on_what_is_seen_twice_and_some_looks_apart(
    reports: tuple[LiveReport, ...], said: list[tuple[float, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _, _ = begun(seen(ranks()))
    session = Examined(seen(ranks()), monkeypatch, *reports)
    assert watch.job
    session.watch(watch.job)
    assert session.look_for(watch, 900.0) == said
