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
from ncheck.triage.watch import Reason, _Watch, is_trouble

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


def diagnosis(*, works: bool = False) -> Diagnosis:
    return Diagnosis("slow_rank", 0.4, "", "", (), (0,), ("gpu01",), "", (), works)


def test_what_an_examination_must_say_for_an_alarm() -> None:
    accused, at_work = diagnosis(), diagnosis(works=True)
    unclear = report(Work.UNKNOWN)
    still = Reason.STILL
    judged = {
        "it stands, and somebody is accused": is_trouble(report(Work.STILL, accused), still, before=None),
        "it stands, and nothing shows why": is_trouble(report(Work.STILL), still, before=None),
        "ranks wait for one that works": is_trouble(report(Work.STILL, at_work), still, before=None),
        "it moves": is_trouble(report(Work.MOVES), still, before=None),
        "it moves, and a rank is slow": is_trouble(report(Work.MOVES, accused), Reason.SLOW, before=None),
        "it moves, and waits for one that works": is_trouble(report(Work.MOVES, at_work), Reason.SLOW, before=None),
        "nothing shows whether it moves": is_trouble(unclear, still, before=None),
        "nor at the second time": is_trouble(unclear, still, before=unclear),
        "it has ended meanwhile": is_trouble(report(Work.STILL, ranks=()), still, before=None),
    }
    assert [words for words, trouble in judged.items() if trouble] == [
        "it stands, and somebody is accused", "it stands, and nothing shows why", "it moves, and a rank is slow",
        "nor at the second time",
    ]  # fmt: skip
