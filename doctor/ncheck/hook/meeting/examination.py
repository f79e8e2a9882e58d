"""The examiner as the hub sees it: a child that writes one line of JSON, or fails to."""

from __future__ import annotations

import json
import os
import selectors
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from ncheck.hook.meeting.messages import NotMet
from ncheck.hook.meeting.wire import LARGEST_FROM_HUB
from ncheck.text import printable
from ncheck.this_machine.process import OWN_END, end, is_over

if TYPE_CHECKING:
    from subprocess import Popen

_LOOK = 0.1  # seconds between two looks at the child: others may hold its pipe when it is gone
_CHUNK = 1 << 20  # bytes
_LARGEST = LARGEST_FROM_HUB // 4  # in another spelling it may be longer
_LOG_KEPT = 4096  # bytes of its standard error


class Examination:
    """Runs until `result` is the report, an object of JSON, or the reason why there is none."""

    def __init__(self, selector: selectors.BaseSelector, process: Popen[bytes], until: float) -> None:
        self._selector, self._process, self._until = selector, process, until
        self._started = time.monotonic()
        self._line, self._log = bytearray(), bytearray()
        self._pipes: dict[IO[bytes], bytearray] = {}
        self.result: dict[str, Any] | NotMet | None = None
        for pipe, kept in ((process.stdout, self._line), (process.stderr, self._log)):
            if pipe:
                os.set_blocking(pipe.fileno(), False)
                self._pipes[pipe] = kept
                selector.register(pipe, selectors.EVENT_READ, lambda _, pipe=pipe: self._read(pipe))

    @property
    def wake(self) -> float:
        """When to call `tick` if nothing comes."""
        return min(self._until, time.monotonic() + _LOOK)

    def tick(self, now: float) -> None:
        if self.result is None and is_over(self._process):
            for pipe in self._pipes:
                self._read(pipe)
            if self.result is None:
                self.result = NotMet("crashed", "the checks ended without a report" + self._last_words())
        elif self.result is None and now >= self._until:
            seconds = self._until - self._started
            self.result = NotMet("overran", f"the checks did not end within {max(0.0, seconds):.3g} s")

    def close(self) -> None:
        for pipe in self._pipes:
            self._forget(pipe)
        end(self._process, 0.0 if isinstance(self.result, NotMet) else OWN_END)
        for pipe in self._pipes:
            pipe.close()

    def _read(self, pipe: IO[bytes]) -> None:
        """Take what was written. The report is over at the end of its line, whoever holds the pipe after that."""
        if self.result is not None:
            self._forget(pipe)  # a pipe that has ended can be read without an end
            return
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        if not data:
            self._forget(pipe)
        kept = self._pipes[pipe]
        kept += data
        if kept is self._log:
            del kept[:-_LOG_KEPT]
        elif b"\n" in data:
            self.result = _report(bytes(kept.partition(b"\n")[0]))
        elif len(kept) > _LARGEST:
            self.result = NotMet("crashed", "the checks wrote too long a report")

    def _last_words(self) -> str:
        lines = self._log.decode("utf-8", "replace").strip().splitlines()
        return f": {printable(lines[-1].strip(), 300)}" if lines else ""

    def _forget(self, pipe: IO[bytes]) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(pipe)


def _report(line: bytes) -> dict[str, Any] | NotMet:
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        report = None
    return report if isinstance(report, dict) else NotMet("crashed", "the checks wrote no report")
