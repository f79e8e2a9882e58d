"""The live part where there is no terminal: a few plain lines on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from doctor.report import text as words
from doctor.report.progress import DONE, FAILURES_SHOWN, Progress, failure_line

if TYPE_CHECKING:
    from doctor.model.evidence import Login
    from doctor.model.finding import Finding
    from doctor.model.node import Node


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
