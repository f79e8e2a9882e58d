"""The bytes that come from a node: first lines among which the marked ones count, then exact numbers of bytes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncheck.fleet.link import Stream


MOST_NOISE = 64 * 1024  # bytes that are no answer: start-up files print a page, not a book


class NodeFloodsError(Exception):
    """More came than any greeting could be."""


class Lines:
    """A buffer over a stream. Each call has a time in seconds: TimeoutError, and EOFError where the stream ended."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.buffer = bytearray()
        self.mark = ""
        self.told: dict[str, str] = {}

    def until_marker(self, marker: str, seconds: float) -> str:
        """Return what was printed before the marker, as text. From then on only marked lines count."""
        wanted = f"\n{marker} hello\n".encode()
        deadline, seen = time.monotonic() + seconds, 0
        while (at := self.buffer.find(wanted, max(0, seen - len(wanted)))) < 0:
            seen = len(self.buffer)
            if seen > MOST_NOISE:
                raise NodeFloodsError(f"over {MOST_NOISE // 1024} KiB came before an answer{self.shown()}")
            self._more(deadline)
        noise = bytes(self.buffer[:at])
        del self.buffer[: at + len(wanted)]
        self.mark = marker + " "
        return noise.decode("utf-8", "backslashreplace")

    def told_until(self, last: str, seconds: float) -> dict[str, str]:
        """Return the marked lines, first word to rest, up to the one that is named."""
        self.first_of((last,), seconds)
        return self.told

    def first_of(self, words: tuple[str, ...], seconds: float) -> tuple[str, str]:
        """Return the next marked line that begins with one of these words: that word and the rest."""
        deadline, unmarked = time.monotonic() + seconds, 0
        while True:
            line = self._line(deadline)
            if line.startswith(self.mark):
                word, _, rest = line[len(self.mark) :].partition(" ")
                self.told[word] = rest
                if word in words:
                    return word, rest
            unmarked += len(line) + 1
            if unmarked > MOST_NOISE:
                raise NodeFloodsError(f"over {MOST_NOISE // 1024} KiB came that are no answer")

    def exactly(self, wanted: int, seconds: float) -> bytes:
        """Return that many bytes."""
        deadline = time.monotonic() + seconds
        while len(self.buffer) < wanted:
            self._more(deadline)
        data = bytes(self.buffer[:wanted])
        del self.buffer[:wanted]
        return data

    def shown(self) -> str:
        """Return the last line that came, for a message: ": words", or nothing."""
        lines = self.buffer[-400:].decode("utf-8", "backslashreplace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def _line(self, deadline: float) -> str:
        while (at := self.buffer.find(b"\n")) < 0:
            if len(self.buffer) > MOST_NOISE:
                raise NodeFloodsError(f"a line of over {MOST_NOISE // 1024} KiB that is no answer")
            self._more(deadline)
        line = bytes(self.buffer[:at])
        del self.buffer[: at + 1]
        return line.decode("utf-8", "backslashreplace").rstrip("\r")

    def _more(self, deadline: float) -> None:
        data = self.stream.receive(max(0.0, deadline - time.monotonic()))
        if not data:
            raise EOFError("the connection ended")
        self.buffer += data
