"""Which node is where while a run goes on: what both observers keep."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TextIO

from ncheck.report import text as words

if TYPE_CHECKING:
    from ncheck.model.evidence import Login
    from ncheck.model.finding import Finding
    from ncheck.model.node import Node
    from ncheck.observer import Observer


FAILURES_SHOWN = 20


UNRECORDED = "not recorded"


LONG = ("measuring ", "running ")


FAILED = "failed"


WAITING = "waiting"


DONE = "done"


class Progress:
    """Which node is where, shared by both observers. Every method is called from many threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stages: dict[str, str] = {}
        self.failures = 0
        self.lost_recordings = 0
        self.told: set[str] = set()

    def begin(self, nodes: tuple[Node, ...]) -> None:
        with self.lock:
            self.stages = {node.name: WAITING for node in nodes}

    def move(self, node: str, stage: str) -> None:
        """Put a node into a stage. One whose login failed stays failed, whatever else is told of it."""
        with self.lock:
            if self.stages.get(node) != FAILED:
                self.stages[node] = stage

    def fail(self, node: str) -> int:
        """Mark a node as failed, and return how many have."""
        with self.lock:
            self.stages[node] = FAILED
            self.failures += 1
            return self.failures

    def unrecorded(self, stage: str) -> bool:
        """Tell whether a stage says that a recording could not be saved, which is worth a line the first time."""
        if not stage.startswith(UNRECORDED):
            return False
        with self.lock:
            self.lost_recordings += 1
            return self.lost_recordings == 1

    def takes_long(self, stage: str) -> bool:
        """Tell whether a stage is one of the probe's, which take seconds each; True the first time only."""
        with self.lock:
            new = stage.startswith(LONG) and stage not in self.told
            self.told.add(stage)
            return new

    def counts(self) -> Counter[str]:
        with self.lock:
            return Counter(self.stages.values())


def failure_line(node: str, login: Login) -> str:
    """Say in one line which node could not be used, and why."""
    cause = login.cause.value if login.cause else "failed"
    detail = words.line(login.detail)
    return f"{words.line(node)}: {cause}" + (f": {detail}" if detail else "")


class PlainLines:
    """A line for each login that failed, up to a number, for each round of the probe, and one when all is over."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream, self.clock = stream, clock
        self.progress = Progress()
        self.began = 0.0
        self.over = False

    def started(self, nodes: tuple[Node, ...]) -> None:
        self.began = self.clock()
        self.progress.begin(nodes)
        self._print(f"asking {words.count(len(nodes), 'node')}")

    def stage(self, node: str, stage: str) -> None:
        self.progress.move(node, stage)
        if self.progress.unrecorded(stage):
            self._print(f"{words.line(node)}: {words.line(stage)}")
        elif self.progress.takes_long(stage):
            self._print(f"{words.line(stage)}, {self.clock() - self.began:.1f} s so far")

    def login_failed(self, node: str, login: Login) -> None:
        failures = self.progress.fail(node)
        if failures <= FAILURES_SHOWN:
            self._print(failure_line(node, login))
        if failures == FAILURES_SHOWN:
            self._print("further nodes that fail are in the report")

    def judged(self, findings: tuple[Finding, ...]) -> None: ...

    def finished(self) -> None:
        if self.over:
            return
        self.over = True
        counts = self.progress.counts()
        total = words.count(sum(counts.values()), "node")
        self._print(f"{counts[DONE]} of {total} answered, {self.clock() - self.began:.1f} s")

    def _print(self, words_of_it: str) -> None:
        """Print one whole line at once, and go on without a reader: an observer must not raise."""
        try:
            self.stream.write(f"ncheck: {words_of_it}\n")
            self.stream.flush()
        except (OSError, ValueError):
            pass


def observer_for(stream: TextIO, environ: Mapping[str, str]) -> Observer:
    """Return a live table for a terminal, plain lines for everything else (a log, a pipe, TERM=dumb)."""
    if not stream.isatty() or environ.get("TERM", "dumb") == "dumb":
        return PlainLines(stream)
    from ncheck.report.live_table import LiveTable

    return LiveTable(stream, environ)
