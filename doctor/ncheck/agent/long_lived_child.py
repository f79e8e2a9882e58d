"""A long-lived child that exchanges lines of JSON; it runs, and what it opens stays open, until the agent ends."""

import json
import queue
import subprocess
import threading
import time
from importlib.util import find_spec

from ncheck.agent.commands import ENVIRONMENT, decoded, end_group, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, Optional, Sequence, Union

    from ncheck.agent.commands import Environment

_PREFIX = "ncheck:"
_LONGEST = 4 * 1024 * 1024  # bytes of a line: it may hold many identifiers
_LONGEST_TEXT = 1000  # characters of a line that is no message
_MOST_UNREAD = 10000  # unread lines; of a child that prints more, the rest is lost


class LongLivedChild:
    """It ends with its input, or by `end`. Other lines than its messages, also on stderr, are text for people."""

    def __init__(self, argv: "Sequence[str]", environment: "Environment") -> None:
        own = dict(environment, **ENVIRONMENT)
        self.process = start(argv, own, stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines: "queue.Queue[Optional[str]]" = queue.Queue()
        self.at_end = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for data in iter(lambda: self.process.stdout.readline(_LONGEST), b""):
            line = decoded(data).strip()
            if line and self.lines.qsize() < _MOST_UNREAD:
                self.lines.put(line if line.startswith(_PREFIX) else line[:_LONGEST_TEXT])
        self.process.stdout.close()
        self.lines.put(None)

    def send(self, message: object) -> None:
        """Send it one line of JSON. Raises OSError if it has ended."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def messages(self, ends: float) -> "Iterator[Union[str, Dict[str, Any]]]":
        """Yield its lines until the time limit or its end: messages as dicts, all others as text."""
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                return
            if line is None:
                self.at_end = True
                self.lines.put(None)  # for the next call
                return
            yield _message(line)

    @property
    def lives(self) -> bool:
        """Whether it may still print: a child that has closed its output is about to end."""
        return not self.at_end and self.process.poll() is None

    def end(self) -> None:
        """End it and what it started in its group; its output is left to the thread that reads it."""
        end_group(self.process.pid)
        try:
            self.process.stdin.close()
        except OSError:
            pass  # the last message did not arrive
        try:
            self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            pass  # it sleeps in the kernel, and ends when it wakes


def source_of(module: str) -> str:
    """Return the text of a module of the agent, for another interpreter to run."""
    spec: "Any" = find_spec(module)
    text: str = spec.loader.get_source(module)
    return text


def _message(line: str) -> "Union[str, Dict[str, Any]]":
    """Return the message in a line; any other line unchanged, because the libraries that it loads print too."""
    if not line.startswith(_PREFIX + "{"):
        return line
    try:
        message: "Dict[str, Any]" = json.loads(line[len(_PREFIX) :])
    except (ValueError, RecursionError):
        return line[:_LONGEST_TEXT]
    return message
