"""Progress of a run on standard error: plain lines in a log or a pipe, a live table on a terminal."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from ncheck.redact import redact
from ncheck.report import text as words

if TYPE_CHECKING:
    from ncheck.model.evidence import Login
    from ncheck.model.finding import Finding
    from ncheck.model.node import Node


EVERY = 15.0  # seconds between two lines of a long run
_WHOLE = 10  # seconds from which tenths do not matter
FAILURES_SHOWN = 20
WAITING, DONE, FAILED = "waiting", "done", "failed"
MORE_FAILURES = "more nodes failed: see the report"


class NodeStages:
    """The stage of each node. Both observers use it; every method is called from many threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stages: dict[str, str] = {}
        self.failures = 0
        self.lost_recordings = 0
        self.announced: set[str] = set()

    def begin(self, nodes: tuple[Node, ...]) -> None:
        with self.lock:
            self.stages = {node.name: WAITING for node in nodes}

    def move(self, node: str, stage: str) -> None:
        """Set the stage of a node. A node whose login failed stays failed."""
        with self.lock:
            if self.stages.get(node) != FAILED:
                self.stages[node] = stage

    def fail(self, node: str) -> int:
        """Mark a node as failed, and return the number of failed nodes."""
        with self.lock:
            self.stages[node] = FAILED
            self.failures += 1
            return self.failures

    def unrecorded(self) -> bool:
        """Return whether this is the first recording that could not be saved: only that one gets a line."""
        with self.lock:
            self.lost_recordings += 1
            return self.lost_recordings == 1

    def first_in(self, stage: str) -> bool:
        """Return whether no node was in this stage before."""
        with self.lock:
            new = stage not in self.announced
            self.announced.add(stage)
            return new

    def counts(self) -> Counter[str]:
        with self.lock:
            return Counter(self.stages.values())


def failure_line(node: str, login: Login) -> str:
    """Return one line with the node that failed and the cause."""
    cause = login.cause.value if login.cause else "failed"
    detail = redact(words.line(login.detail))
    return f"{words.line(node)}: {cause}" + (f": {detail}" if detail else "")


def elapsed(seconds: float, limit: float) -> str:
    """Return "12 s elapsed, at most 38 s left"; without a limit only the first half."""
    left = f", at most {max(limit - seconds, 0.0):.0f} s left" if limit else ""
    return f"{seconds:.{0 if seconds >= _WHOLE else 1}f} s elapsed{left}"


class PlainLines:
    """A line for each failed login up to a limit, for each round of the probe, one every `every` seconds of a long run,
    and one at the end. `limit` is how many seconds the run may take, 0 where that is unknown.
    """

    def __init__(
        self, stream: TextIO, clock: Callable[[], float] = time.monotonic, *, limit: float = 0.0, every: float = EVERY
    ) -> None:
        self.stream, self.clock = stream, clock
        self.limit, self.every = limit, every
        self.progress = NodeStages()
        self.began = 0.0
        self.over = False
        self.ended = threading.Event()

    def started(self, nodes: tuple[Node, ...]) -> None:
        self.began = self.clock()
        self.progress.begin(nodes)
        self._print(f"connecting to {words.count(len(nodes), 'node')}")
        threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        """Say from time to time that the run goes on, and for how long."""
        while not self.ended.wait(self.every):
            counts = self.progress.counts()
            busy = sum(counts.values()) - counts[DONE] - counts[FAILED]
            doing = f"waiting for {words.count(busy, 'node')}" if busy else "judging"
            self._print(f"{doing}, {elapsed(self.clock() - self.began, self.limit)}")

    def stage(self, node: str, stage: str, *, slow: bool = False) -> None:
        self.progress.move(node, stage)
        if slow and self.progress.first_in(stage):
            self._print(f"{words.line(stage)}, {elapsed(self.clock() - self.began, self.limit)}")

    def not_recorded(self, node: str, why: str) -> None:
        if self.progress.unrecorded():
            self._print(f"{words.line(node)}: not recorded: {words.line(why)}")

    def login_failed(self, node: str, login: Login) -> None:
        failures = self.progress.fail(node)
        if failures <= FAILURES_SHOWN:
            self._print(failure_line(node, login))
        if failures == FAILURES_SHOWN:
            self._print(MORE_FAILURES)

    def judged(self, findings: tuple[Finding, ...]) -> None: ...

    def finished(self) -> None:
        if self.over:
            return
        self.over = True
        self.ended.set()
        counts = self.progress.counts()
        total = words.count(sum(counts.values()), "node")
        self._print(f"done: {counts[DONE]} of {total} answered, {self.clock() - self.began:.1f} s")

    def _print(self, message: str) -> None:
        """Print one whole line at once. A closed stream is no error: an observer must not raise."""
        try:
            self.stream.write(f"ncheck: {message}\n")
            self.stream.flush()
        except (OSError, ValueError):
            pass
