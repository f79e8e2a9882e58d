"""What a node sends, as records: first marked lines of text, then frames of a known size. It is not trusted.

And a source as the agent reads it.
"""

from __future__ import annotations

import time
from types import NoneType
from typing import TYPE_CHECKING

from ncheck.fleet.engine import NodeFloodsError
from ncheck.model.evidence import Answer, Command, File, Greeting, Reply, Source, Status, Tree, too_deep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncheck.fleet.engine import Stream
    from ncheck.model.evidence import JsonValue


MOST_NOISE = 64 * 1024  # bytes of unexpected output: start-up files print a page at most


class Lines:
    """A buffer over a stream. Each call has a limit in seconds: TimeoutError, and EOFError where the stream ended."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.buffer = bytearray()
        self.mark = ""
        self.marked: dict[str, str] = {}

    def until_marker(self, marker: str, seconds: float) -> str:
        """Return what was printed before the marker, as text. From then on only marked lines count."""
        wanted = f"\n{marker} hello\n".encode()
        deadline, seen = time.monotonic() + seconds, 0
        while (at := self.buffer.find(wanted, max(0, seen - len(wanted)))) < 0:
            seen = len(self.buffer)
            if seen > MOST_NOISE:
                raise NodeFloodsError(f"over {MOST_NOISE // 1024} KiB came before any answer{self.last_line()}")
            self._more(deadline)
        noise = bytes(self.buffer[:at])
        del self.buffer[: at + len(wanted)]
        self.mark = marker + " "
        return noise.decode("utf-8", "backslashreplace")

    def marked_until(self, last: str, seconds: float) -> dict[str, str]:
        """Return the marked lines, first word to rest, up to the one that is named."""
        self.first_of((last,), seconds)
        return self.marked

    def first_of(self, words: tuple[str, ...], seconds: float) -> tuple[str, str]:
        """Return the next marked line that begins with one of these words: that word and the rest."""
        deadline, unmarked = time.monotonic() + seconds, 0
        while True:
            line = self._line(deadline)
            if line.startswith(self.mark):
                word, _, rest = line[len(self.mark) :].partition(" ")
                self.marked[word] = rest
                if word in words:
                    return word, rest
            unmarked += len(line) + 1
            if unmarked > MOST_NOISE:
                raise NodeFloodsError(f"over {MOST_NOISE // 1024} KiB of unexpected output came")

    def exactly(self, wanted: int, seconds: float) -> bytes:
        """Return that many bytes."""
        deadline = time.monotonic() + seconds
        while len(self.buffer) < wanted:
            self._more(deadline)
        data = bytes(self.buffer[:wanted])
        del self.buffer[:wanted]
        return data

    def last_line(self) -> str:
        """Return the last line that came, for a message: ": words", or nothing."""
        lines = self.buffer[-400:].decode("utf-8", "backslashreplace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def _line(self, deadline: float) -> str:
        while (at := self.buffer.find(b"\n")) < 0:
            if len(self.buffer) > MOST_NOISE:
                raise NodeFloodsError(f"an unexpected line of over {MOST_NOISE // 1024} KiB came")
            self._more(deadline)
        line = bytes(self.buffer[:at])
        del self.buffer[: at + 1]
        return line.decode("utf-8", "backslashreplace").rstrip("\r")

    def _more(self, deadline: float) -> None:
        data = self.stream.receive(max(0.0, deadline - time.monotonic()))
        if not data:
            raise EOFError("the connection ended")
        self.buffer += data


DEEPEST = 32  # levels of lists and mappings in an answer; the deepest of ours has five
_LONGEST_NUMBER = 10  # digits of a user's number
_LONGEST = 1e9  # seconds; and no exit status, signal or port is larger either
_KINDS = {Command: "command", File: "file", Tree: "tree", Answer: "answer"}


def on_the_wire(source: Source) -> dict[str, JsonValue]:
    """Return a source as the agent reads it: its kind, its key and its fields."""
    fields: dict[str, JsonValue] = {"kind": _KINDS[type(source)], "key": source.key}
    for name, value in vars(source).items():
        if name not in ("shape", "kept", "slow"):  # for this side alone
            fields[name] = list(value) if isinstance(value, tuple) else value
    return fields


def greeting_from(marked: Mapping[str, str], noise: str) -> Greeting:
    """Return the greeting from its marked lines, first word to rest."""
    user = marked.get("uid", "").strip()
    return Greeting(
        host_name=marked.get("host", ""),
        boot_id=marked.get("boot", ""),
        network_namespace=marked.get("net", ""),
        user_id=int(user) if user.isascii() and user.isdigit() and len(user) <= _LONGEST_NUMBER else None,
        noise=noise,
    )


def reply_from(answer: object, asked: JsonValue = None) -> Reply:
    """Return the node's reply to what was asked; one of the wrong shape is a failed reply that says so."""
    if not isinstance(answer, dict):
        return Reply(Status.FAILED, reason="the node sent something that is not a reply", asked=asked)
    wrong = [str(name) for name, value in answer.items() if name not in _TYPES or type(value) not in _TYPES[name]] or [
        name
        for name, good in (
            ("no status", "status" in answer),
            ("status", answer.get("status", "ok") in _NODES_OWN),
            ("exit_status", -_LONGEST < (answer.get("exit_status") or 0) < _LONGEST),
            ("seconds", -_LONGEST < answer.get("seconds", 0) < _LONGEST),
            ("value", not too_deep(answer.get("value"), DEEPEST)),
        )
        if not good
    ]
    if wrong:
        what = ", ".join(sorted(wrong))[:200]
        return Reply(Status.FAILED, reason=f"the node sent a malformed reply: {what}", asked=asked)
    return Reply(**{**answer, "status": _NODES_OWN[answer["status"]], "asked": asked})


_NODES_OWN = {status.value: status for status in Status if status is not Status.NOT_ASKED}  # that one is the head's

_TYPES: dict[str, tuple[type, ...]] = {
    "status": (str,),
    "reason": (str,),
    "exit_status": (int, NoneType),
    "stdout": (str,),
    "stderr": (str,),
    "value": (dict, list, str, int, float, bool, NoneType),  # any JSON: each parser checks its own
    "seconds": (int, float),
    "truncated": (bool,),
}
