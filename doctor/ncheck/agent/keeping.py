"""A child that runs until the agent ends, with messages line by line: what it opened stays open meanwhile."""

import json
import queue
import subprocess
import threading
import time

from ncheck.agent.commands import ENVIRONMENT, decoded, end_group, start

_OURS = "ncheck:"
_LONGEST = 4 * 1024 * 1024  # bytes of a line: it may hold many identifiers
_WIDEST = 1000  # characters of a line that is none of its own
_MOST = 10000  # unread lines; of a child that prints more, the rest is lost


class KeptChild:
    """It ends with its input, or by `end`. What it prints beside its own lines, also on stderr, is text for people."""

    def __init__(self, argv, environment):
        own = dict(environment, **ENVIRONMENT)
        self.process = start(argv, own, stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.heard, self.silent = queue.Queue(), False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for data in iter(lambda: self.process.stdout.readline(_LONGEST), b""):
            line = decoded(data).strip()
            if line and self.heard.qsize() < _MOST:
                self.heard.put(line if line.startswith(_OURS) else line[:_WIDEST])
        self.process.stdout.close()
        self.heard.put(None)

    def say(self, message):
        """Send it one line of JSON. OSError where it has ended."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def told(self, ends):
        """Yield its lines until the time limit or its end: its own lines as dicts, all others as they are."""
        while True:
            try:
                line = self.heard.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                return
            if line is None:
                self.silent = True
                self.heard.put(None)  # for the next call
                return
            yield _told(line)

    @property
    def lives(self):
        """Whether it may still print something: a child that has closed its output is about to end."""
        return not self.silent and self.process.poll() is None

    def end(self):
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


def _told(line):
    """Return the message of its own line; any other line unchanged, because the libraries it loads print too."""
    if not line.startswith(_OURS + "{"):
        return line
    try:
        return json.loads(line[len(_OURS) :])
    except (ValueError, RecursionError):
        return line[:_WIDEST]
