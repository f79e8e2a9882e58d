"""`ncheck triage --watch` over real trainings: torch ranks over gloo on three hosts, one trouble after the other."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import pytest

from tests.skips import cannot

from . import faults
from .command import begin, listing
from .hosts import Lab
from .layers import ROOT
from .promises import eventually
from .running_jobs import PATIENCE, Job, running
from .stuck import stuck_folder

pytestmark = pytest.mark.slow
STALLED = 10  # seconds
CALM = {"PAUSE": "0.2", "BUSY": "0.3"}  # a job's steps, for as long as a watch takes
LIVELY = 60  # steps: so long has a job to get on until a watch may say that it stands still
USUAL = 180  # steps, of 0.2 s: more than the three times STALLED that a watch looks on before it calls a job slow
Event = dict[str, Any]


@pytest.fixture(autouse=True)
def torch() -> None:
    if not find_spec("torch") or not shutil.which("py-spy", path=str(Path(sys.executable).parent)):
        cannot("torch and py-spy are not installed beside the tests: make test TORCH=1")


class Watching:
    """A watch that goes on; `events` are all that it has printed."""

    def __init__(self, lab: Lab, *argv: str) -> None:
        listing(lab, lab.names[:3])
        line = ("triage", "--watch", "nodes.txt", "-o", "json", "--stalled", str(STALLED), *argv)
        self.running = begin(lab, *line)
        self.events: list[Event] = []
        self._lines: SimpleQueue[str] = SimpleQueue()
        self.thread = Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        for line in self.running.process.stdout or ():
            self._lines.put(line)
        self._lines.put("")

    def until(self, is_it: Callable[[Event], bool], seconds: float = PATIENCE) -> Event:
        """Return the first event that is it, of those that are still to come."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(0.1, end - time.monotonic()))
            except Empty:
                raise AssertionError(f"not within {seconds} s: {self.events}") from None
            assert line, f"the watch has ended: {self.events}"
            self.events.append(json.loads(line))
            if is_it(self.events[-1]):
                return self.events[-1]

    def note(self, words: str) -> Event:
        return self.until(lambda event: event["event"] == "note" and words in event["text"])

    def noted(self, words: str) -> bool:
        """Wait for a note that may have come before others."""
        return any(words in event["text"] for event in self.events) or bool(self.note(words))

    def alarm(self, kind: str = "still", seconds: float = PATIENCE) -> Event:
        return self.until(lambda event: event["event"] == kind, seconds)

    def ended(self) -> int:
        """Wait for its end, and return its exit code."""
        while line := self._lines.get(timeout=PATIENCE):
            self.events.append(json.loads(line))
        return self.running.process.wait(PATIENCE)

    @property
    def alarms(self) -> list[Event]:
        return [event for event in self.events if event["event"] != "note"]


@contextmanager
def watching(lab: Lab, *argv: str) -> Iterator[Watching]:
    watch = Watching(lab, *argv)
    with watch.running.process as process:
        try:
            yield watch
        finally:
            if process.poll() is None:
                watch.running.interrupt()
            watch.thread.join(PATIENCE)


def named(alarm: Event) -> tuple[str, list[int], list[str]]:
    """Return cause, ranks and nodes of the best diagnosis."""
    best = alarm["report"]["diagnoses"][0]
    return best["cause"], best["ranks"], best["nodes"]


def test_a_job_is_watched_through_all_that_happens_to_it(triage_lab: Lab) -> None:
    lab = triage_lab
    command = 'echo "$NCHECK_CAUSE $NCHECK_RANKS" >>alarms'
    job = Job(torchrun=True, restarts=3, variables=CALM)
    with running(lab, job) as run, watching(lab, "--on-stall", command) as watch:
        watch.note("the job is watched: 3 ranks on nodes node01, node02, node03")
        run.await_steps(LIVELY)
        faults.cut(lab.nodes[2])
        watch.note("not watched: node03: the connection broke")
        assert named(watch.alarm())[2] == ["node03"]
        lab.nodes[2].sh("ip link set eth0 up")
        watch.note("the job makes progress again")
        run.signal(1, "STOP")
        assert named(watch.alarm()) == ("rank_stopped", [1], ["node02"])
        run.signal(1, "CONT")
        watch.note("the job makes progress again")
        assert watch.noted("watched again: node03")
        run.signal(1, "KILL")
        watch.note("the job has started again: 3 ranks on nodes node01, node02, node03")
    assert len(watch.alarms) == 2, watch.events
    home = lab.root / ROOT.home.lstrip("/")
    assert (home / "alarms").read_text().splitlines()[1] == "rank_stopped 1"
    assert (home / watch.alarms[1]["saved"]).exists()


def test_a_rank_that_others_wait_for_is_no_alarm_as_long_as_it_works_and_its_end_ends_the_watch(
    triage_lab: Lab,
) -> None:
    """It evaluates, four times as long as a job may stand still."""
    job = Job("evaluation-in-store@1:5", variables=CALM)
    with running(triage_lab, job) as run, watching(triage_lab) as watch:
        watch.note("the job is watched")
        run.await_stillness()
        time.sleep(4 * STALLED)
        assert watch.running.process.poll() is None
        assert watch.alarms == []
        run.signal(1, "KILL")
        cause, ranks, _ = named(watch.alarm())
        assert cause in ("rank_missing", "rank_crashed")
        assert ranks == [1]
        assert watch.ended() == 1


def test_a_rank_that_became_slow_is_named(triage_lab: Lab) -> None:
    with running(triage_lab, Job(f"slow-cpu@1:{USUAL}", variables=CALM)), watching(triage_lab) as watch:
        assert named(watch.alarm("slow", 2 * PATIENCE)) == ("slow_rank", [1], ["node02"])


def test_a_job_is_watched_from_inside_and_its_watch_ends_with_it(triage_lab: Lab) -> None:
    """No ncheck runs on the head, and no node is logged in to. A rank is stopped, then its data cannot be read."""
    triage_lab.nodes[1].write("/data/shard-00", "")
    variables = {**CALM, "NCHECK_STALLED": str(STALLED), "NCHECK": "warn"}
    job = Job("stuck-mount@1:0", program="-m ncheck.hook --watch train.py", variables=variables)
    with running(triage_lab, job) as run:
        run.await_words(0, "ncheck: .* the job is watched: 3 ranks on nodes")
        run.await_steps(LIVELY)
        run.signal(1, "STOP")
        run.await_words(0, r"rank_stopped \(\d+% sure\).*rank 1")
        run.await_words(0, r"saved: ncheck triage \S+ncheck-stall-\S+\.zip")
        run.signal(1, "CONT")
        run.await_words(0, "ncheck: .* the job makes progress again")
        with stuck_folder(triage_lab.nodes[1], "/data"):
            run.await_words(0, r"storage_hang \(\d+% sure\).*rank 1")

    nobody: list[str] = []

    def watchers() -> list[str]:
        return [line for node in triage_lab.nodes for line in node.processes().values() if "ncheck.hook" in line]

    assert eventually(watchers, nobody, PATIENCE) == nobody
