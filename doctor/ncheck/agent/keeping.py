"""A child that runs until the agent ends, with messages line by line: what it opened stays open meanwhile."""

import json
import queue
import subprocess
import threading
import time

from ncheck.agent.commands import ENVIRONMENT, decoded, end_group, started

_OURS = "ncheck:"
_LONGEST = 4 * 1024 * 1024  # bytes of a line: it may tell of many identifiers at once
_WIDEST = 1000  # characters of a line that is none of its own
_MOST = 10000  # lines that nobody has read; of one that says more, the rest is lost


class KeptChild:
    """It ends with its input, or by `end`. What it prints beside its own lines, on stderr too, are words for people."""

    def __init__(self, argv, environment):
        own = dict(environment, **ENVIRONMENT)
        self.process = started(argv, own, stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
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
        """Tell it one line of JSON. OSError where it has ended."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def told(self, ends):
        """Yield what it tells, until the time has come or it ends: its own lines as dicts, all others as they are."""
        while True:
            try:
                line = self.heard.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                return
            if line is None:
                self.silent = True
                self.heard.put(None)  # for whoever asks next
                return
            yield _told(line)

    @property
    def lives(self):
        """Tell whether it may still say something: what has closed its output is about to end."""
        return not self.silent and self.process.poll() is None

    def end(self):
        """End it and what it started in its group; its output is left to the thread that reads it."""
        end_group(self.process.pid)
        try:
            self.process.stdin.close()
        except OSError:
            pass  # what it was told last did not come there
        try:
            self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            pass  # it sleeps in the kernel and has been told


def _told(line):
    """Return what a line of its own tells; any other as it stands, for whatever it loads may print there."""
    if not line.startswith(_OURS + "{"):
        return line
    try:
        return json.loads(line[len(_OURS) :])
    except (ValueError, RecursionError):
        return line[:_WIDEST]
